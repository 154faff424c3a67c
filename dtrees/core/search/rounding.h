/* What is lost where products are rounded to doubles. */
#ifndef DTREES_ROUNDING_H
#define DTREES_ROUNDING_H

#define LAST_BITS 0x1p-49 /* of a difference of two products, for their sizes */

#endif
