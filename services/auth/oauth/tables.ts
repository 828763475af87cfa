import { hash } from 'node:crypto';
import type { Pool } from 'pg';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';

/**
 * Tables of the authorization server. They hold no bearer value: a code or token is found by its SHA-256, and a client
 * secret and a private key are encrypted.
 */
export const migrateOAuth = (pool: Pool): Promise<void> =>
  withMigrationLock(pool, async (tx) => {
    await tx.query(`
      create schema if not exists auth;
      create table if not exists auth.oauth_artifacts (
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
      create index if not exists oauth_artifacts_grant on auth.oauth_artifacts (grant_id) where grant_id is not null;
      create index if not exists oauth_artifacts_client on auth.oauth_artifacts (client_id) where client_id is not null;
      create index if not exists oauth_artifacts_person on auth.oauth_artifacts ((payload ->> 'accountId'))
        where model = 'Grant';
      create index if not exists oauth_artifacts_expires on auth.oauth_artifacts (expires_at) where expires_at is not null;
      create table if not exists auth.oauth_clients (
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
      create index if not exists oauth_clients_idle on auth.oauth_clients ((coalesce(last_used_at, created_at)));
      create table if not exists auth.signing_keys (
        kid text primary key,
        public_key jsonb not null,
        key_version text not null,
        sealed bytea not null,
        created_at timestamptz not null default now(),
        -- From then on it signs, until a later key does.
        signs_at timestamptz not null
      )`);
  });

/** How many stored values were encrypted with each version of SECRET_KEY: the list may not lose these. */
export const oauthKeyVersions = async (pool: Pool): Promise<ReadonlyMap<string, number>> => {
  const { rows } = await pool.query<{ version: string; count: string }>(
    `select key_version as version, count(*) from (
       select key_version from auth.signing_keys
       union all select key_version from auth.oauth_clients where key_version is not null
     ) used group by 1`,
  );
  return new Map(rows.map(({ version, count }) => [version, Number(count)]));
};

/** Ids of grants are no secrets, but one rule for all leaves no room for a mistake. */
export const hashOf = (id: string): Buffer => hash('sha256', id, 'buffer');

/** What the page of consent shows of the app, in the row of an authorization. */
export interface AppOfInteraction {
  readonly name: string | null;
  /** Its id is the address of its metadata document. */
  readonly hasDocument: boolean;
}
