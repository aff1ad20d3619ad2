/*
 * Sees each call of a user's function that has special rights.
 *
 * The tests preload this library into their servers (test/lib/cluster.sh). It hooks into the function manager and looks
 * at each call of a function that belongs to no superuser. In what pgbench_ext does, none of the three users of the
 * session, the authenticated, the session's and the current one, may have special rights then: the function could take
 * them. Such a call is a violation, except for the roles in parameter sensor.allowed, which a test sets where a caller
 * names a special role on purpose.
 *
 * What pgbench_ext does is:
 *   worker  anything in its background workers
 *   wire    anything in a session whose startup packet gave an application_name that begins with "pgbench_ext", as the
 *           connections of its workers do unless told otherwise
 *   call    what a client backend does while a function of the extension is on its stack. A superuser's own SELECT of a
 *           user's function is that superuser's business.
 * A parallel worker does what its leader does.
 *
 * Not seen is what calls no function of a user: a DO block, or a view, default or policy of built-in functions alone.
 * SQL functions are seen, because the planner inlines none that has a hook; their plans are therefore not those of a
 * server without this library.
 *
 * In the data directory there are sensor.counts, which starts with the four 64-bit numbers of struct Shared, and
 * sensor.log, to which each process appends one line for each distinct violation: place, function, owner,
 * authenticated, session and current user, separated by tabs. An asterisk follows each user with special rights.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_auth_members.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_parameter_acl.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "postmaster/bgworker.h"
#include "postmaster/postmaster.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#define EXTENSION "pgbench_ext"

PG_MODULE_MAGIC;

void		_PG_init(void);

/* On whose behalf a process calls a function. */
typedef enum Place
{
	ELSEWHERE,
	IN_WORKER,
	ON_WIRE,
	IN_CALL,
} Place;

static const char *const PLACES[] = {"elsewhere", "worker", "wire", "call"};

/*
 * What the processes of a server share: sensor.counts, mapped, so that the counts outlive processes that are killed. A
 * new file is all zeroes, which are valid atomics on all processors that have 64-bit ones.
 */
typedef struct Shared
{
	/* Calls of users' functions. */
	pg_atomic_uint64 calls;
	/* Those in the places of pgbench_ext. */
	pg_atomic_uint64 placed;
	/* Those with special rights. */
	pg_atomic_uint64 violations;
	/* Calls outside of a transaction, where catalogs cannot be read. */
	pg_atomic_uint64 unseen;
	/* The Place of each process, by its number in ProcGlobal, for its parallel workers. */
	uint8		places[MAX_BACKENDS + 1];
} Shared;

static Shared *shared;

/* What is known of a function. */
typedef struct Function
{
	Oid			oid;
	Oid			owner;
	/* It belongs to pgbench_ext. */
	bool		ours;
	/* Its owner is no superuser. That of an extension's function can replace it as well. */
	bool		users;
} Function;

static HTAB *functions;
static bool functions_are_stale = true;

/* What is known of a role. */
typedef struct Role
{
	Oid			oid;
	bool		special;
} Role;

static HTAB *roles;
static bool roles_are_stale = true;

/* A violation as a line of the log tells it apart from others. */
typedef struct Violation
{
	Oid			function;
	Oid			authenticated;
	Oid			session;
	Oid			current;
	Place		place;
} Violation;

static HTAB *logged;

/* How many functions of pgbench_ext are on the stack. */
static int	depth;

static char *allowed;

/*
 * Predefined roles without special rights, as in the extension. Those that a later version brings are special until
 * they are listed here.
 */
static const Oid HARMLESS[] = {
	3373,						/* pg_monitor */
	3374,						/* pg_read_all_settings */
	3375,						/* pg_read_all_stats */
	3377,						/* pg_stat_scan_tables */
	4200,						/* pg_signal_backend */
	4544,						/* pg_checkpoint */
	4550,						/* pg_use_reserved_connections, from 16 on */
	6171,						/* pg_database_owner */
	6392,						/* pg_signal_autovacuum_worker, from 18 on */
};

static HTAB *
table_of(const char *name, Size key, Size entry)
{
	HASHCTL		control = {.keysize = key, .entrysize = entry};

	return hash_create(name, 64, &control, HASH_ELEM | HASH_BLOBS);
}

/* Empties a cache whose catalogs have changed. Reading them may tell of the next change. */
static void
renew(HTAB **table, bool *stale, const char *name, Size entry)
{
	if (!*stale)
		return;
	*stale = false;
	if (*table != NULL)
		hash_destroy(*table);
	*table = table_of(name, sizeof(Oid), entry);
}

static void
forget_functions(Datum argument, int cache, uint32 hash)
{
	functions_are_stale = true;
}

/* A function is a user's because of a role's attribute. */
static void
forget_roles(Datum argument, int cache, uint32 hash)
{
	roles_are_stale = true;
	functions_are_stale = true;
}

static void
forget_allowed(const char *value, void *extra)
{
	roles_are_stale = true;
}

static bool
is_allowed(Oid role)
{
	char	   *name = GetUserNameFromId(role, true);
	char	   *names = pstrdup(allowed);
	List	   *list;
	ListCell   *cell;

	if (name == NULL || !SplitIdentifierString(names, ',', &list))
		return false;
	foreach(cell, list)
	{
		if (strcmp(lfirst(cell), name) == 0)
			return true;
	}
	return false;
}

static bool
is_harmless(Oid role)
{
	for (int i = 0; i < lengthof(HARMLESS); i++)
	{
		if (HARMLESS[i] == role)
			return true;
	}
	return false;
}

/* Whether a role is special by itself. One that has been dropped has no rights. */
static bool
has_special_attributes(Oid role)
{
	HeapTuple	tuple;
	Form_pg_authid row;
	bool		special;

	if (role < FirstNormalObjectId && role != BOOTSTRAP_SUPERUSERID)
		return !is_harmless(role);
	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(role));
	if (!HeapTupleIsValid(tuple))
		return false;
	row = (Form_pg_authid) GETSTRUCT(tuple);
	special = row->rolsuper || row->rolcreaterole || row->rolreplication || row->rolbypassrls;
	ReleaseSysCache(tuple);
	return special;
}

/* Whether one of these roles, or everyone, may set a superusers' parameter. */
static bool
may_set_parameters(List *reached)
{
	Relation	relation = table_open(ParameterAclRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;
	bool		may = false;

	while (!may && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		datum = heap_getattr(tuple, Anum_pg_parameter_acl_paracl, RelationGetDescr(relation), &isnull);
		Acl		   *acl = isnull ? NULL : DatumGetAclPCopy(datum);

		for (int i = 0; acl != NULL && i < ACL_NUM(acl); i++)
		{
			Oid			grantee = ACL_DAT(acl)[i].ai_grantee;

			may = may || grantee == ACL_ID_PUBLIC || list_member_oid(reached, grantee);
		}
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	return may;
}

/* Whether a role has special rights, or is a member by any chain, with whatever options, of one that has. */
static bool
find_special(Oid role)
{
	List	   *reached = list_make1_oid(role);

	if (is_allowed(role))
		return false;
	for (int i = 0; i < list_length(reached); i++)
	{
		Oid			member = list_nth_oid(reached, i);
		CatCList   *memberships;

		if (has_special_attributes(member))
			return true;
		memberships = SearchSysCacheList1(AUTHMEMMEMROLE, ObjectIdGetDatum(member));
		for (int j = 0; j < memberships->n_members; j++)
		{
			HeapTuple	tuple = &memberships->members[j]->tuple;

			reached = list_append_unique_oid(reached, ((Form_pg_auth_members) GETSTRUCT(tuple))->roleid);
		}
		ReleaseSysCacheList(memberships);
	}
	return may_set_parameters(reached);
}

/*
 * Whether a role has special rights. The work is done in a context of its own: the caller's may live as long as a query
 * that calls a function for each of many rows.
 */
static bool
is_special(Oid oid)
{
	Role	   *role;
	bool		special;
	MemoryContext work,
				before;

	renew(&roles, &roles_are_stale, "sensor's roles", sizeof(Role));
	role = hash_search(roles, &oid, HASH_FIND, NULL);
	if (role != NULL)
		return role->special;
	work = AllocSetContextCreate(CurrentMemoryContext, "sensor", ALLOCSET_SMALL_SIZES);
	before = MemoryContextSwitchTo(work);
	special = find_special(oid);
	MemoryContextSwitchTo(before);
	MemoryContextDelete(work);
	role = hash_search(roles, &oid, HASH_ENTER, NULL);
	role->special = special;
	return special;
}

static Function
look_up(Oid oid)
{
	Function	function = {.oid = oid};
	Function   *known;
	HeapTuple	tuple;
	Oid			extension;

	renew(&functions, &functions_are_stale, "sensor's functions", sizeof(Function));
	known = hash_search(functions, &oid, HASH_FIND, NULL);
	if (known != NULL)
		return *known;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	if (!HeapTupleIsValid(tuple))
		return function;		/* dropped while it is called */
	function.owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	function.users = !superuser_arg(function.owner);
	extension = getExtensionOfObject(ProcedureRelationId, oid);
	if (OidIsValid(extension))
	{
		char	   *name = get_extension_name(extension);

		function.ours = name != NULL && strcmp(name, EXTENSION) == 0;
	}
	known = hash_search(functions, &oid, HASH_ENTER, NULL);
	*known = function;
	return function;
}

static bool
begins_with_extension(const char *text)
{
	return text != NULL && strncmp(text, EXTENSION, strlen(EXTENSION)) == 0;
}

/*
 * What a process is from its start. The value to which RESET returns is the startup packet's; the packet itself would
 * need the headers of every library that libpq uses.
 */
static Place
find_place_of_process(void)
{
	if (MyBgworkerEntry != NULL)
		return begins_with_extension(MyBgworkerEntry->bgw_type) ? IN_WORKER : ELSEWHERE;
	return begins_with_extension(GetConfigOptionResetString("application_name")) ? ON_WIRE : ELSEWHERE;
}

/* Finds out where this process is, and leaves that for its parallel workers. */
static Place
find_place(void)
{
	static bool is_known = false;
	static Place of_process;
	Place		place;

	if (MyProc == NULL)
		return ELSEWHERE;
	if (IsParallelWorker())
		return shared->places[MyProc->lockGroupLeader - ProcGlobal->allProcs];
	if (!is_known)
		of_process = find_place_of_process();
	is_known = true;
	place = of_process == ELSEWHERE && depth > 0 ? IN_CALL : of_process;
	shared->places[MyProc - ProcGlobal->allProcs] = place;
	return place;
}

/* Appends a field with its separator. Names may hold whatever their users like. */
static void
append_field(StringInfo line, const char *text, const char *end)
{
	for (; *text != '\0'; text++)
		appendStringInfoChar(line, iscntrl((unsigned char) *text) ? '?' : *text);
	appendStringInfoString(line, end);
}

static void
append_user(StringInfo line, Oid user, char end)
{
	char	   *name = GetUserNameFromId(user, true);

	append_field(line, name != NULL ? name : "(dropped)", is_special(user) ? "*" : "");
	appendStringInfoChar(line, end);
}

static void
append_to_log(const Violation *violation, Oid owner)
{
	StringInfoData line;
	char	   *path = psprintf("%s/sensor.log", DataDir);
	int			file;

	initStringInfo(&line);
	append_field(&line, PLACES[violation->place], "\t");
	append_field(&line, format_procedure_qualified(violation->function), "\t");
	append_user(&line, owner, '\t');
	append_user(&line, violation->authenticated, '\t');
	append_user(&line, violation->session, '\t');
	append_user(&line, violation->current, '\n');
	/* One write, so that the lines of several processes stay whole. */
	file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0 || write(file, line.data, line.len) != line.len)
		ereport(FATAL, (errcode_for_file_access(), errmsg("could not write \"%s\": %m", path)));
	close(file);
	pfree(path);
	pfree(line.data);
}

/* Looks at a call of a user's function. */
static void
look_at(const Function *function)
{
	Violation	violation;
	bool		found;

	pg_atomic_fetch_add_u64(&shared->calls, 1);
	/* Compared as bytes. */
	memset(&violation, 0, sizeof violation);
	violation.place = find_place();
	if (violation.place == ELSEWHERE)
		return;
	pg_atomic_fetch_add_u64(&shared->placed, 1);
	violation.function = function->oid;
	violation.authenticated = GetAuthenticatedUserId();
	violation.session = GetSessionUserId();
	violation.current = GetUserId();
	if (!is_special(violation.authenticated) && !is_special(violation.session) && !is_special(violation.current))
		return;
	pg_atomic_fetch_add_u64(&shared->violations, 1);
	if (logged == NULL)
		logged = table_of("sensor's violations", sizeof(Violation), sizeof(Violation));
	hash_search(logged, &violation, HASH_ENTER, &found);
	if (!found)
		append_to_log(&violation, function->owner);
}

/* Whether the server has to call `watch` for a function: of all but those that came with the server. */
static bool
is_watched(Oid function)
{
	if (function < FirstNormalObjectId)
		return false;
	/* A leader prepares what its parallel workers call, and so comes here, before it starts them. */
	find_place();
	return true;
}

/*
 * Called when a function begins and ends; `ours` is kept from its beginning to its end, between which the extension may
 * have been dropped. An error in here ends the call before it has begun.
 */
static void
watch(FmgrHookEventType event, FmgrInfo *info, Datum *ours)
{
	if (event == FHET_START)
	{
		Function	function;

		*ours = BoolGetDatum(false);
		if (!IsTransactionState())
		{
			pg_atomic_fetch_add_u64(&shared->unseen, 1);
			return;
		}
		function = look_up(info->fn_oid);
		if (function.users)
			look_at(&function);
		*ours = BoolGetDatum(function.ours);
		if (function.ours)
		{
			depth++;
			find_place();
		}
	}
	else if (DatumGetBool(*ours))
	{
		depth--;
		find_place();
	}
}

static void
map_shared(void)
{
	char	   *path = psprintf("%s/sensor.counts", DataDir);
	int			file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	/* With all its blocks: on a full disk, writing to a mapped hole ends a process by SIGBUS. */
	if (file < 0 || (errno = posix_fallocate(file, 0, sizeof(Shared))) != 0)
		ereport(FATAL, (errcode_for_file_access(), errmsg("could not create \"%s\": %m", path)));
	shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (shared == MAP_FAILED)
		ereport(FATAL, (errmsg("could not map \"%s\": %m", path)));
	close(file);
	pfree(path);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		ereport(ERROR, (errmsg("the sensor must be in shared_preload_libraries")));
	/* Another library's hook would need a Datum of its own for each call. */
	if (needs_fmgr_hook != NULL || fmgr_hook != NULL)
		ereport(FATAL, (errmsg("another library has hooked into the function manager")));
	/* Invisible in pg_settings, of which pgbench_ext keeps a copy with each run. */
	DefineCustomStringVariable("sensor.allowed", "Special roles that may call users' functions.", NULL, &allowed, "",
							   PGC_SUSET, GUC_LIST_INPUT | GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE, NULL,
							   forget_allowed, NULL);
	MarkGUCPrefixReserved("sensor");
	map_shared();
	/* ALTER EXTENSION … ADD tells nobody, and is not noticed for functions that have been called before. */
	CacheRegisterSyscacheCallback(PROCOID, forget_functions, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHOID, forget_roles, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHMEMMEMROLE, forget_roles, (Datum) 0);
	CacheRegisterSyscacheCallback(PARAMETERACLOID, forget_roles, (Datum) 0);
	needs_fmgr_hook = is_watched;
	fmgr_hook = watch;
}
