/* --doctor: what parts of the bench may need, whether it is here, and the command that brings it. */
#pragma once

/* A line each on stdout. */
void fa_report_doctor(void);
