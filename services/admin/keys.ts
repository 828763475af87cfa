import { readFile, stat } from 'node:fs/promises';
import { apikey } from '#domain/apikey.ts';
import { birthOf, Rejection } from '#domain/decider.ts';
import { type FoundKey, findKeys, listApiKeys } from '#projections/models/apikeys.ts';
import { keysOf } from '#runtime/identity/key-form.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { scopes } from '#schemas/apikey.ts';
import { rotateSigningKey } from '#services/auth/oauth/keys.ts';
import { createApiKey, hashKey, revokeApiKey, rotateApiKey } from '#services/workflows/provision.ts';
import { type Admin, type CommandOutput, caughtUp, type Given, shown } from './context.ts';
import { idOf, modeOf, workspaceOf } from './find.ts';

/** API keys. Only their creator ever sees the secret. */

const dayMs = 86_400_000;

const daysOf = (text: string): number => {
  const days = Number(text);
  if (!Number.isInteger(days) || days < 1 || days > 365)
    throw new UsageError('--days is a whole number from 1 to 365.');
  return days;
};

const scopesOf = (text: string | undefined): readonly string[] => {
  if (text === undefined) return scopes;
  const wanted = text.split(',').map((one) => one.trim());
  const strange = wanted.filter((one) => !scopes.some((scope) => scope === one));
  if (strange.length > 0) throw new UsageError(`No scope: ${strange.join(', ')}. There are: ${scopes.join(', ')}.`);
  return wanted;
};

/** @returns null without the flag: the key sees all clients. */
const clientsOf = (text: string | undefined): readonly string[] | null =>
  text === undefined ? null : text.split(',').map((one) => idOf(one.trim(), 'client'));

export const createKey = async (admin: Admin, { flag }: Given): Promise<CommandOutput> => {
  const mode = modeOf(flag('mode') ?? '');
  const lifeMs = daysOf(flag('days') ?? '365') * dayMs;
  const wanted = scopesOf(flag('scopes'));
  const clientIds = clientsOf(flag('clients'));
  const { id: workspaceId, members } = await workspaceOf(admin, flag('workspace'));
  const [owner, second] = Object.entries(members).filter(([, { role }]) => role === 'owner');
  const named = flag('member');
  if (named === undefined && second !== undefined) throw new UsageError('There are several Owners: say --member ID.');
  const memberId = named === undefined ? (owner?.[0] ?? '') : idOf(named, 'member');
  const expiresAt = new Date(admin.operator.clock() + lifeMs).toISOString();
  const name = flag('name') ?? `${mode} key`;
  const { id, secret } = await createApiKey(admin.operator, {
    workspaceId,
    memberId,
    name,
    mode,
    scopes: wanted,
    expiresAt,
    clientIds,
  });
  await shown(admin);
  const limit = clientIds === null ? {} : { clients: clientIds.join(',') };
  return { keyId: id, workspaceId, memberId, mode, ...limit, expiresAt, secret };
};

export const listKeys = async (admin: Admin, { flag }: Given): Promise<CommandOutput> => {
  const { id, members } = await workspaceOf(admin, flag('workspace'));
  await caughtUp(admin);
  const keys = await listApiKeys(admin.pool, id);
  return keys.map(({ keyId, name, mode, prefix, memberId, scopeNames, clientIds, expiresAt, revokedAt }) => ({
    keyId,
    name,
    mode,
    begins: prefix,
    member: members[memberId]?.name ?? 'removed',
    scopes: scopeNames.length,
    clients: clientIds?.length ?? 'all',
    expiresAt,
    revokedAt,
  }));
};

/** The workspace in the key's own stream: a key stays with the live workspace. */
const workspaceOfKey = async ({ store }: Admin, keyId: string): Promise<string> => {
  const { events } = await store.load(apikey, keyId);
  const created = birthOf(apikey, events);
  if (created === undefined) throw new Rejection('not_found', 'There is no such key: key list shows them.');
  return created.metadata.workspaceId;
};

export const rotateKey = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
  const keyId = idOf(at(0), 'key');
  const workspaceId = await workspaceOfKey(admin, keyId);
  const { secret } = await rotateApiKey(admin.operator, workspaceId, keyId);
  await shown(admin);
  return { keyId, workspaceId, secret };
};

export const revokeKey = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
  const keyId = idOf(at(0), 'key');
  const workspaceId = await workspaceOfKey(admin, keyId);
  await revokeApiKey(admin.operator, workspaceId, keyId);
  await shown(admin);
  return { keyId, workspaceId, revoked: true };
};

/** Bytes of a list of leaked keys, keys in it, and keys that one query looks up. */
const maxListBytes = 16 * 1_024 * 1_024;
const maxLeaked = 10_000;
const pageOfKeys = 500;

/** @throws UsageError */
const leakedIn = async (file: string): Promise<readonly string[]> => {
  const size = await stat(file).then(
    (known) => known.size,
    () => null,
  );
  if (size === null) throw new UsageError(`There is no file ${file}.`);
  if (size > maxListBytes) throw new UsageError(`The list has more than ${maxListBytes} bytes: split it.`);
  const keys = keysOf(await readFile(file, 'utf8'));
  if (keys.length > maxLeaked) throw new UsageError(`The list has more than ${maxLeaked} keys: split it.`);
  return keys;
};

/** A leaked secret that its key had before a rotation ends the key too, as long as it works. */
const endLeaked = async (admin: Admin, key: FoundKey | undefined): Promise<string> => {
  if (key === undefined) return 'unknown';
  const now = new Date(admin.operator.clock()).toISOString();
  if (key.revokedAt !== null) return 'revoked before';
  if (key.expiresAt <= now || (key.previousUntil ?? key.expiresAt) <= now) return 'expired';
  await revokeApiKey(admin.operator, key.workspaceId, key.keyId);
  return 'revoked now';
};

/**
 * Ends the keys whose secrets stand in a file: the report of a scanner, in any form. The secrets are never shown. If we
 * die half way, the same command goes on: an ended key stays ended.
 */
export const revokeLeaked = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
  const leaked = await leakedIn(at(0));
  await caughtUp(admin);
  const rows: Record<string, unknown>[] = [];
  for (let from = 0; from < leaked.length; from += pageOfKeys) {
    const page = leaked.slice(from, from + pageOfKeys);
    const found = await findKeys(admin.pool, page.map(hashKey));
    for (const secret of page) {
      const key = found.get(hashKey(secret));
      const result = await endLeaked(admin, key);
      rows.push({
        begins: secret.slice(0, 12),
        result,
        keyId: key?.keyId ?? null,
        workspaceId: key?.workspaceId ?? null,
      });
    }
  }
  await shown(admin);
  return rows;
};

/** The authorization server. */
export const rotateOAuthKey = async ({ pool, secrets }: Admin): Promise<CommandOutput> => {
  const { kid, signsAt, isNew } = await rotateSigningKey(pool, secrets);
  return { key: kid, signsFrom: signsAt, isNew };
};
