/* --help, from the table of options. */
#ifndef FA_OPTIONS_HELP_H
#define FA_OPTIONS_HELP_H

char *fa_options_help(void); /* malloc'd */

#endif
