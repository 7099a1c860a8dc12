# Lines of evidence_current.sh --rows (with jq -s), counted by file.
group_by(.file) | map({file: .[0].file, looked_at: length, current: map(select(.current)) | length})
