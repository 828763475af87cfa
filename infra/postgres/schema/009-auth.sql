-- What signs persons and programs in: hashes, keys and secrets, which are never in events. Back it up, nothing rebuilds
-- it. The authorization server's tables hold no bearer value: a code or token is found by its SHA-256, and a client
-- secret and a private key are encrypted.

create schema if not exists auth;

create table auth.people (
  person_id uuid primary key,
  email_mac bytea not null unique,
  mac_version text not null,
  password_hash text,
  totp_secret bytea,
  totp_version text,
  totp_step bigint,
  totp_confirmed boolean not null default false,
  recovery_macs bytea[] not null default '{}',
  recovery_version text,
  created_at timestamptz not null default now(),
  era integer not null default 0
);

create table auth.passkeys (
  id uuid primary key,
  person_id uuid not null references auth.people on delete cascade,
  credential_id bytea not null unique,
  public_key bytea not null,
  counter bigint not null,
  transports text[] not null,
  name text not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz
);
create index passkeys_person on auth.passkeys (person_id, created_at);

create table auth.sessions (
  id uuid primary key,
  secret_hash bytea not null unique,
  person_id uuid not null,
  workspace_id uuid,
  mode text not null default 'test',
  device text not null,
  address text not null,
  created_at timestamptz not null,
  last_used_at timestamptz not null,
  expires_at timestamptz not null,
  ended_at timestamptz,
  end_reason text,
  end_recorded boolean not null default false
);
create index sessions_person on auth.sessions (person_id, created_at) where ended_at is null;
create index sessions_unrecorded on auth.sessions (ended_at) where ended_at is not null and not end_recorded;
create index sessions_expiry on auth.sessions (expires_at);

create table auth.person_links (
  token_hash bytea primary key,
  person_id uuid not null,
  purpose text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index person_links_expiry on auth.person_links (expires_at);
create index person_links_person on auth.person_links (person_id);

create table auth.attempts (
  key bytea primary key,
  failures integer not null,
  last_at timestamptz not null
);
create index attempts_age on auth.attempts (last_at);

create table auth.spent (
  hash bytea primary key,
  expires_at timestamptz not null
);
create index spent_expiry on auth.spent (expires_at);

create table auth.oauth_artifacts (
  -- As oidc-provider names it: Interaction, Grant, AuthorizationCode, RefreshToken, RegistrationAccessToken.
  model text not null,
  id_hash bytea not null,
  payload jsonb not null,
  -- Of the family: a grant, its codes and its refresh tokens.
  grant_id uuid,
  client_id text,
  consumed_at timestamptz,
  -- Null: never.
  expires_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (model, id_hash)
);
create index oauth_artifacts_grant on auth.oauth_artifacts (grant_id) where grant_id is not null;
create index oauth_artifacts_client on auth.oauth_artifacts (client_id) where client_id is not null;
create index oauth_artifacts_person on auth.oauth_artifacts ((payload ->> 'accountId'))
  where model = 'Grant';
create index oauth_artifacts_expires on auth.oauth_artifacts (expires_at) where expires_at is not null;

create table auth.oauth_clients (
  client_id text primary key,
  -- Without the secret.
  metadata jsonb not null,
  key_version text,
  sealed bytea,
  created_at timestamptz not null default now(),
  -- Null: it has never got a code.
  last_used_at timestamptz,
  -- The address from which it was registered.
  created_from text
);
create index oauth_clients_idle on auth.oauth_clients ((coalesce(last_used_at, created_at)));

create table auth.signing_keys (
  kid text primary key,
  public_key jsonb not null,
  key_version text not null,
  sealed bytea not null,
  created_at timestamptz not null default now(),
  -- From then on it signs, until a later key does.
  signs_at timestamptz not null
);

-- Of what power was taken; a row is committed before its event.
create table auth.withdrawals (
  -- A key, a grant or a live workspace; the nil UUID counts all withdrawals.
  subject uuid primary key,
  times int8 not null,
  noted_at timestamptz not null
);
create index withdrawals_age on auth.withdrawals (noted_at);

-- When each key and app was last used.
create table auth.last_uses (credential_id uuid primary key, used_at timestamptz not null);

-- Keys and grants about to be made: they count before the read model shows them.
create table ops.credential_places (
  id uuid primary key,
  kind text not null,
  -- The live workspace.
  workspace_id uuid not null,
  taken_at timestamptz not null default now()
);
create index credential_places_workspace on ops.credential_places (workspace_id, kind);
