/* --doctor: what parts of the bench may need, whether it is here, and the command that brings it. */
#ifndef FA_REPORT_DOCTOR_H
#define FA_REPORT_DOCTOR_H

/* A line each on stdout. */
void fa_report_doctor(void);

#endif
