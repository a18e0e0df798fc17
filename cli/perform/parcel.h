/* Cases and results as bytes, for another process of the same program: structs go as they are,
 * what they point to behind them. */
#ifndef GB_CLI_PERFORM_PARCEL_H
#define GB_CLI_PERFORM_PARCEL_H

#include "cli/perform/perform.h"

/* All zero is empty. */
typedef struct gb_parcel {
    gb_text bytes; /* owned */
    size_t at;     /* read so far */
    bool broken;   /* more was read than there is */
} gb_parcel;

/* A case to perform, and what its performer has to know. */
typedef struct gb_errand {
    gb_settings settings; /* of this case alone; owned */
    gb_case test;         /* lent: `texts`, and `choice` by the settings */
    char *texts[4];       /* owned: file, path, repro, arguments */
    char *refusal;        /* owned; why nothing may be measured, or NULL */
    bool visit;           /* a further visit of a case that was checked before */
    int blamed;           /* failures that were looked into so far */
    gb_rates best_probe;  /* so far */
} gb_errand;

/* What came of it. */
typedef struct gb_outcome {
    gb_status status;
    char *failure, *messages, *engine; /* owned; engine: its description, or NULL */
    int blamed;
    gb_rates best_probe;
    bool more; /* a failure that is still looked into: another answer follows */
} gb_outcome;

void gb_cli_parcel_free(gb_parcel *parcel);
/* Of the errand's texts those of the case are taken. */
void gb_cli_put_errand(gb_parcel *parcel, const gb_errand *errand, const gb_settings *settings,
        const gb_case *test);
/* False: the bytes are none. The errand is to be freed in either case, and stays where it is. */
bool gb_cli_take_errand(gb_parcel *parcel, gb_errand *errand);
void gb_cli_errand_free(gb_errand *errand);
void gb_cli_put_outcome(gb_parcel *parcel, const gb_outcome *outcome, const gb_case_result *result);
bool gb_cli_take_outcome(gb_parcel *parcel, gb_outcome *outcome, gb_case_result *result);
void gb_cli_outcome_free(gb_outcome *outcome);

/* One parcel over a descriptor, with its length in front. False: the other end is gone. */
bool gb_cli_parcel_send(const gb_parcel *parcel, int descriptor);
bool gb_cli_parcel_receive(gb_parcel *parcel, int descriptor);

#endif
