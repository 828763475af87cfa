-- Posts of the sandbox that its own scheduler had and that got another content: what the network shows in the place of that
-- with which they were made, which the ledger keeps.
create table sandbox.other_words (
  platform     text not null,
  post_id      text not null,
  content      text not null,
  content_hash text not null,
  primary key (platform, post_id)
);
