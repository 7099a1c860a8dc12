/* --help, from the table of options. */
#pragma once

char *fa_options_help(void); /* malloc'd */
