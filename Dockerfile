# PostgreSQL with pgbench_ext, pg_cron and pgTAP; docs/container.md says how it is used.
#
#   docker build -t pgbench_ext .                                                         Debian 13, PostgreSQL 17
#   docker build -t pgbench_ext --build-arg DEBIAN=bookworm --build-arg PG_MAJOR=15 .     Debian 12, PostgreSQL 15
#   docker build -t pgbench_ext-cnpg --target cnpg --build-arg PG_MAJOR=18 .              only the extension
ARG DEBIAN=trixie

FROM docker.io/library/debian:${DEBIAN}-slim AS server
ARG PG_MAJOR=17
COPY container/packages /usr/local/sbin/packages
RUN packages "$PG_MAJOR" cron pgtap

FROM server AS build
ARG PG_MAJOR=17
WORKDIR /src
COPY . .
RUN container/build "$PG_MAJOR" /out

# An image volume of CloudNativePG.
FROM scratch AS cnpg
ARG PG_MAJOR=17
COPY --from=build /out/usr/lib/postgresql/${PG_MAJOR}/lib/ /lib/
COPY --from=build /out/usr/share/postgresql/${PG_MAJOR}/extension/ /share/extension/
COPY LICENSE /licenses/pgbench_ext/
USER 65532:65532

FROM server
ARG PG_MAJOR=17
COPY --from=build /out/ /
COPY container/entrypoint /usr/local/bin/entrypoint
ENV PATH=/usr/lib/postgresql/${PG_MAJOR}/bin:$PATH PGDATA=/var/lib/postgresql/data PGUSER=postgres
VOLUME /var/lib/postgresql
EXPOSE 5432
STOPSIGNAL SIGINT
HEALTHCHECK --start-period=60s CMD pg_isready -q -h 127.0.0.1
ENTRYPOINT ["entrypoint"]
