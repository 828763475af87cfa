import type { Pool } from 'pg';
import { withMigrationLock } from '#runtime/postgres/migrate.ts';

/**
 * What signs a person in: hashes, keys and secrets, which are never in events. These tables are no read models: they are
 * backed up, and nothing rebuilds them.
 */
export const migratePeople = (pool: Pool): Promise<void> =>
  withMigrationLock(pool, async (tx) => {
    await tx.query(`
      create schema if not exists auth;
      create table if not exists auth.people (
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
      create table if not exists auth.passkeys (
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
      create index if not exists passkeys_person on auth.passkeys (person_id, created_at);
      create table if not exists auth.sessions (
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
      create index if not exists sessions_person on auth.sessions (person_id, created_at) where ended_at is null;
      create index if not exists sessions_unrecorded on auth.sessions (ended_at) where ended_at is not null and not end_recorded;
      create index if not exists sessions_expiry on auth.sessions (expires_at);
      create table if not exists auth.person_links (
        token_hash bytea primary key,
        person_id uuid not null,
        purpose text not null,
        created_at timestamptz not null default now(),
        expires_at timestamptz not null
      );
      create index if not exists person_links_expiry on auth.person_links (expires_at);
      create index if not exists person_links_person on auth.person_links (person_id);
      create table if not exists auth.attempts (
        key bytea primary key,
        failures integer not null,
        last_at timestamptz not null
      );
      create index if not exists attempts_age on auth.attempts (last_at);
      create table if not exists auth.spent (
        hash bytea primary key,
        expires_at timestamptz not null
      );
      create index if not exists spent_expiry on auth.spent (expires_at);
    `);
  });
