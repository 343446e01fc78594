-- Strings of documents are bytea: they may hold any bytes, which text may not.
-- docs/formats/postgres.md says what each column holds.

create table meta (
    one             boolean primary key default true check (one), -- one row
    id              uuid    not null default gen_random_uuid(),
    epoch           bigint  not null default 0,
    trimmed         bigint  not null default 0,
    last_collection bigint  not null default 0
) with (fillfactor = 10); -- every write updates the row: room for its new versions in the page

insert into meta default values;

create table policies (
    one  boolean primary key default true check (one),
    body bytea not null
);

create table collections (
    id           bigint  primary key,
    tenant       bytea   not null,
    name         bytea   not null,
    analyzer     bytea   not null,
    code_bits    integer not null,
    chunker      bytea   not null,
    own_dense    integer not null,
    own_multi    integer not null,
    created      bigint  not null,
    generations  bytea,           -- null: it was never reindexed
    queries      bytea
);

-- Of a collection, which is also its first generation, and of every other generation.
create table counters (
    id           bigint primary key,
    next_ordinal bigint not null default 0,
    next_row     bigint not null default 0
) with (fillfactor = 50);

-- Hashes, because an index holds no key of more than 2,704 bytes.
create unique index on collections (sha256(tenant), sha256(name));

create table documents (
    collection bigint  not null, -- number of the generation, as in contents and codes
    ordinal    bigint  not null,
    key        bytea   not null,
    version    bigint  not null,
    title      bytea   not null,
    format     bytea   not null,
    chunker    bytea   not null,
    model      bytea   not null,
    identity   bytea   not null,
    first_row  bigint  not null,
    rows       bigint  not null,
    coded      boolean not null,
    access     bytea   not null,
    epoch      bigint  not null,
    updated    bigint  not null,
    primary key (collection, ordinal)
) with (fillfactor = 90);

create unique index on documents (collection, sha256(key));

create table contents (
    collection bigint   not null,
    ordinal    bigint   not null,
    kind       smallint not null, -- 1 chunks and text, 2 vectors, 3 parsed
    part       integer  not null, -- a value is of at most 1 GB, a content may be larger
    body       bytea    not null,
    primary key (collection, ordinal, kind, part)
);

create table codes (
    collection bigint not null,
    "row"      bigint not null,
    body       bytea  not null,
    primary key (collection, "row")
);

create table embeddings (
    key  bytea  primary key,
    kept bigint not null,
    body bytea  not null
);

create index on embeddings (kept);

-- What is compressed or random already is not compressed again.
alter table contents alter column body set storage external;
alter table embeddings alter column body set storage external;
alter table codes alter column body set storage external;

create table changes (
    epoch      bigint   primary key,
    kind       smallint not null,
    collection bigint   not null,
    ordinal    bigint   not null
);
