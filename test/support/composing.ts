import assert from 'node:assert/strict';
import type { Platform } from '#schemas/common.ts';
import { type Answered, type Caller, startWorld, type World } from './http.ts';
import { afterFile } from './suite.ts';

/** A client with accounts, connected as a guest connects them, and posts for them. */

export interface Composer {
  readonly clientId: string;
  readonly accounts: Readonly<Record<string, string>>;
  /** A valid body for a group, due tomorrow by default. */
  body(more?: Readonly<Record<string, unknown>>): Record<string, unknown>;
}

export const tomorrow = (): string => new Date(Date.now() + 86_400_000).toISOString();

export interface ComposerOptions {
  readonly name?: string;
  readonly timezone?: string;
  readonly by?: Caller;
  /** Of each account; default acme. */
  readonly username?: string;
  /** Time zones of accounts, by platform. */
  readonly zones?: Readonly<Record<string, string>>;
}

/** A world with one composer. It closes after the file's last test. */
export const composedWorld = async (platforms: readonly Platform[], options: ComposerOptions = {}) => {
  const world = await startWorld();
  afterFile(world.close);
  return { world, tester: world.tester, composed: await composer(world, platforms, options) };
};

/** Connects one sandbox account per platform to a new client of the test twin. */
export const composer = async (
  world: World,
  platforms: readonly Platform[],
  options: ComposerOptions = {},
): Promise<Composer> => {
  const by = options.by ?? world.tester;
  const name = options.name ?? `Client ${Math.random().toString(36).slice(2)}`;
  const client = await by.post('/clients', {
    name,
    type: 'brand',
    ...(options.timezone ? { timezone: options.timezone } : {}),
  });
  assert.equal(client.status, 200, client.text);
  const invite = await by.post(`/clients/${client.data.id}/connect-invites`, { platforms });
  for (const platform of platforms) {
    const form = new URLSearchParams({
      platform,
      username: options.username ?? 'acme',
      timezone: options.zones?.[platform] ?? '',
    });
    const answer = await fetch(String(invite.data.url), { method: 'POST', body: form });
    assert.equal(answer.status, 200, await answer.text());
  }
  await world.settled();
  const listed = await by.get(`/accounts?clientId=${client.data.id}&limit=100`);
  const accounts = Object.fromEntries(listed.rows.map((row) => [String(row.platform), row.id]));
  return {
    clientId: client.data.id,
    accounts,
    body: (more = {}) => ({
      clientId: client.data.id,
      content: 'A word from us.',
      targets: { mode: 'group', clientId: client.data.id },
      schedule: { type: 'at', scheduledAt: tomorrow() },
      ...more,
    }),
  };
};

/** Asserts a refusal: its status, its code, and the paths of its errors. */
export const refused = (answer: Answered, status: number, code: string, paths?: readonly string[]): void => {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.body.code, code, answer.text);
  assert.ok(answer.body.correlationId);
  if (paths !== undefined)
    assert.deepEqual((answer.body.errors ?? []).map((one) => one.path).sort(), [...paths].sort());
};
