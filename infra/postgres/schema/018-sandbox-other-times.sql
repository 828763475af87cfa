-- Posts of the sandbox that its own scheduler had and that got another time: milliseconds between that and the one with which
-- they were made, which the ledger keeps.
create table sandbox.other_times (
  platform text not null,
  post_id  text not null,
  by_ms    bigint not null,
  primary key (platform, post_id)
);
