/* SPDX-License-Identifier: Apache-2.0
 * A second file of a program: its calls count with those of the first. */
#include "weir_events.h"

void in_other_file(void);

void in_other_file(void) {
    WEIR_EVENTS_HOT(3);
    __asm__ volatile("");
}
