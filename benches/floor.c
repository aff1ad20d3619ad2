/*
 * The least that a client can do: prepared pk_select over a Unix-domain socket by nothing but epoll_wait, recv and send,
 * with messages made beforehand but for the key. No statistics, no script, no clock but for the end. Its processor time
 * for each transaction is the floor beneath pgbench's and the wire driver's.
 *
 *   floor SOCKET USER DATABASE CLIENTS THREADS SECS ROWS     prints: transactions per second, microseconds for each
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char *path, *user, *database;
static int clients, threads, rows;
static volatile int over;

static void fail(const char *what) { perror(what); exit(1); }

static int put_text(char *at, const char *text) { return (int) strlen(strcpy(at, text)) + 1; }

static int put_int32(char *at, uint32_t value) { value = htonl(value); memcpy(at, &value, 4); return 4; }

/* A message of one letter with its length. */
static int put_message(char *at, char letter, const char *body, int length)
{
	*at = letter;
	put_int32(at + 1, length + 4);
	memcpy(at + 5, body, length);
	return length + 5;
}

/* Waits for a ReadyForQuery, which is the last thing that the server sends. */
static void await_ready(int fd)
{
	static const char ready[] = {'Z', 0, 0, 0, 5, 'I'};
	char buffer[65536];
	for (;;) {
		ssize_t n = recv(fd, buffer, sizeof buffer, 0);
		if (n <= 0) fail("recv");
		if (n >= 6 && !memcmp(buffer + n - 6, ready, 6)) return;
	}
}

static int open_session(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char message[1024], body[512];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), n = 4, m;
	strncpy(address.sun_path, path, sizeof address.sun_path - 1);
	if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof address)) fail(path);
	n += put_int32(message + n, 196608);
	n += put_text(message + n, "user");
	n += put_text(message + n, user);
	n += put_text(message + n, "database");
	n += put_text(message + n, database);
	message[n++] = 0;
	put_int32(message, n);
	if (send(fd, message, n, 0) != n) fail("send");
	await_ready(fd);
	m = put_text(body, "P0");
	m += put_text(body + m, "SELECT * FROM bench_data.pk WHERE id = $1");
	body[m++] = 0, body[m++] = 0;
	n = put_message(message, 'P', body, m);
	n += put_message(message + n, 'S', "", 0);
	if (send(fd, message, n, 0) != n) fail("send");
	await_ready(fd);
	return fd;
}

/* Bind, Describe, Execute, Sync: what libpq's PQsendQueryPrepared sends. */
static void send_transaction(int fd, unsigned *seed)
{
	char message[128], body[64], key[12];
	int length = sprintf(key, "%d", 1 + rand_r(seed) % rows), m = 0, n;
	m += put_text(body, "");
	m += put_text(body + m, "P0");
	memcpy(body + m, "\0\0\0\1", 4), m += 4;
	m += put_int32(body + m, length);
	memcpy(body + m, key, length), m += length;
	memcpy(body + m, "\0\1\0\0", 4), m += 4;
	n = put_message(message, 'B', body, m);
	n += put_message(message + n, 'D', "P\0", 2);
	n += put_message(message + n, 'E', "\0\0\0\0\0", 5);
	n += put_message(message + n, 'S', "", 0);
	if (send(fd, message, n, 0) != n) fail("send");
}

static void *work(void *argument)
{
	long number = (long) argument, count = 0;
	unsigned seed = 1 + number;
	char buffer[16384];
	struct epoll_event events[512], event = {.events = EPOLLIN};
	int poll = epoll_create1(0);
	for (int i = number; i < clients; i += threads) {
		event.data.fd = open_session();
		epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event);
		send_transaction(event.data.fd, &seed);
	}
	while (!over) {
		int ready = epoll_wait(poll, events, 512, 100);
		for (int i = 0; i < ready; i++) {
			int fd = events[i].data.fd;
			ssize_t n = recv(fd, buffer, sizeof buffer, 0);
			if (n <= 0) fail("recv");
			if (n < 6 || buffer[n - 6] != 'Z') continue;
			count++;
			send_transaction(fd, &seed);
		}
	}
	return (void *) count;
}

int main(int argc, char **argv)
{
	pthread_t thread[64];
	struct rusage usage;
	long count = 0;
	if (argc != 8) return 2;
	path = argv[1], user = argv[2], database = argv[3];
	clients = atoi(argv[4]), threads = atoi(argv[5]), rows = atoi(argv[7]);
	for (long i = 0; i < threads; i++) pthread_create(&thread[i], NULL, work, (void *) i);
	sleep(atoi(argv[6]));
	over = 1;
	for (int i = 0; i < threads; i++) {
		void *made;
		pthread_join(thread[i], &made);
		count += (long) made;
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%.0f %.2f\n", count / atof(argv[6]),
		   1e6 / count * (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / (double) count);
	return 0;
}
