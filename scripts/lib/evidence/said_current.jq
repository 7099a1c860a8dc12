# Lines of current.jq (with jq -s) as a line about $file.
map(select(.file == $file)) | "\($file): \(map(select(.current)) | length) of \(length) current"
