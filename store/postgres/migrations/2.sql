-- What daemons that share an index of vectors need: a class that all give a
-- document's rows alike, and who made a change, so that one of them writes the rows.
alter table documents add column class bigint not null default 1; -- of what was there before, any one
alter table documents alter column class drop default;
alter table changes add column author bigint not null default 0;
