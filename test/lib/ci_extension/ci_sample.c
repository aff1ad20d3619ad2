/* Two functions that take processor time: test/scenarios/ci.sh changes the second one in commits. */
#include "postgres.h"

#include "fmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(ci_plain);
PG_FUNCTION_INFO_V1(ci_changed);

/* Each turn needs the one before it, and the caller gets the last one: none can be left out. */
static int64
busy(int64 turns)
{
	uint64		x = (uint64) turns;

	while (turns-- > 0)
		x = x * UINT64CONST(6364136223846793005) + 1;
	return (int64) (x >> 1);
}

Datum
ci_plain(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(busy(PG_GETARG_INT32(0)));
}

Datum
ci_changed(PG_FUNCTION_ARGS)
{
	int64		turns = PG_GETARG_INT32(0);

	PG_RETURN_INT64(busy(turns));
}
