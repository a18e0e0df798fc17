/* Can times be measured on this machine? What the system says of it, check by check. */
#ifndef GB_CLI_REPORT_DOCTOR_H
#define GB_CLI_REPORT_DOCTOR_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

/* Good; times may be worse than on another machine, or scatter; times mean nothing. */
typedef enum gb_check_grade { CHECK_GOOD, CHECK_DOUBTFUL, CHECK_BAD } gb_check_grade;

typedef struct gb_check {
    const char *name, *advice; /* static */
    gb_check_grade grade;
    char finding[160];
} gb_check;

enum { CHECK_LIMIT = 12 };

typedef struct gb_diagnosis {
    size_t n;
    gb_check checks[CHECK_LIMIT];
    double chain_ns; /* gb_cli_chain_ns() at the end of it */
} gb_diagnosis;

/* Processors that this process may use, all the time. */
int gb_cli_usable_processors(void);

/* For a program of so many threads. Watches the machine for a quarter of a second. */
void gb_cli_diagnose(int threads, gb_diagnosis *diagnosis);
bool gb_cli_diagnosis_is_bad(const gb_diagnosis *diagnosis);
/* A list of objects: name, grade ("good", "doubtful", "bad"), finding, advice (null when good). The
 * caller's. */
json_object *gb_cli_diagnosis_record(const gb_diagnosis *diagnosis);

#endif
