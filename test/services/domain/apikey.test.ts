import { deepEqual } from 'node:assert/strict';
import { type ApiKeyCommand, apikey } from '#domain/apikey.ts';
import type { ApiKeyEvent } from '#schemas/apikey.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(apikey);

const now = '2026-01-01T00:00:00.000Z';
const expiresAt = '2026-12-31T00:00:00.000Z';
const create = {
  type: 'Create',
  now,
  memberId: 'ann',
  name: 'CI',
  hash: 'one',
  prefix: 'sk_live_abcd',
  scopes: ['posts.read', 'posts.compose'],
  mode: 'live',
  expiresAt,
  clientIds: null,
} as const satisfies ApiKeyCommand;
const created: ApiKeyEvent = {
  type: 'ApiKeyCreated',
  data: {
    memberId: 'ann',
    name: 'CI',
    hash: 'one',
    prefix: 'sk_live_abcd',
    scopes: ['posts.read', 'posts.compose'],
    mode: 'live',
    expiresAt,
    clientIds: null,
  },
};
const revoked: ApiKeyEvent = { type: 'ApiKeyRevoked', data: {} };
const rotate = { type: 'Rotate', now: '2026-06-01T12:00:00.000Z', hash: 'two', prefix: 'sk_live_efgh' } as const;

suite('apikey', (t) => {
  t('is created once', () => {
    given([]).when(create).then([created]);
    given([created])
      .when({ ...create, hash: 'three' })
      .then([]);
  });

  t('names each scope once', () =>
    given([])
      .when({ ...create, scopes: ['posts.read', 'posts.compose', 'posts.read'] })
      .then([created]),
  );

  t('is limited to each of its clients once, to at most 100', () => {
    const limited = (clientIds: readonly string[]) => given([]).when({ ...create, clientIds });
    const limit = (clientIds: string[]): ApiKeyEvent => ({
      type: 'ApiKeyCreated',
      data: { ...created.data, clientIds },
    });
    limited(['acme', 'brix', 'acme']).then([limit(['acme', 'brix'])]);
    const hundred = Array.from({ length: 100 }, (_one, at) => `client ${at}`);
    limited(hundred).then([limit(hundred)]);
    for (const clientIds of [[], [...hundred, 'one more']]) {
      limited(clientIds).refused('validation_failed', '/clientIds must be 1 to 100 clients');
      limited(clientIds).refused('validation_failed', '/clientIds out_of_range');
    }
    limited([]).refused('validation_failed', 'A key is limited to 1 to 100 clients, or to none.');
  });

  t('needs scopes, each a known one', () => {
    for (const scopes of [[], ['posts.readd'], ['posts.read', '__proto__']]) {
      given([])
        .when({ ...create, scopes })
        .refused('validation_failed', '/scopes must be known scopes, at least one');
    }
    given([])
      .when({ ...create, scopes: [] })
      .refused('validation_failed', '/scopes not_allowed');
    given([])
      .when({ ...create, scopes: [] })
      .refused('validation_failed', 'posts.compose, ');
  });

  t('expires after now and within a year, leap years included', () => {
    const until = (ms: number) =>
      given([]).when({ ...create, expiresAt: new Date(Date.parse(now) + ms).toISOString() });
    const day = 86_400_000;
    const why = '/expiresAt must be after now and at most one year away';
    for (const ms of [0, -1, 366 * day + 1]) until(ms).refused('validation_failed', why);
    until(0).refused('validation_failed', '/expiresAt out_of_range');
    for (const ms of [1, 365 * day, 366 * day]) {
      const at = new Date(Date.parse(now) + ms).toISOString();
      until(ms).then([{ ...created, data: { ...created.data, expiresAt: at } } as ApiKeyEvent]);
    }
    given([])
      .when({ ...create, expiresAt: 'soon' })
      .refused('validation_failed');
  });

  t('keeps the former secret for a day when it is rotated', () =>
    given([created])
      .when(rotate)
      .then([
        {
          type: 'ApiKeyRotated',
          data: {
            hash: 'two',
            prefix: 'sk_live_efgh',
            previousHash: 'one',
            previousUntil: '2026-06-02T12:00:00.000Z',
          },
        },
      ]),
  );

  t('never keeps the former secret beyond the key’s own end', () =>
    given([created])
      .when({ ...rotate, now: '2026-12-30T12:00:00.000Z' })
      .then([
        {
          type: 'ApiKeyRotated',
          data: { hash: 'two', prefix: 'sk_live_efgh', previousHash: 'one', previousUntil: expiresAt },
        },
      ]),
  );

  t('is not rotated when revoked, expired or unknown', () => {
    given([created, revoked]).when(rotate).refused('validation_failed');
    given([created])
      .when({ ...rotate, now: expiresAt })
      .refused('validation_failed');
    given([]).when(rotate).refused('not_found');
  });

  t('is revoked once; a rotation that raced it does not bring it back', () => {
    given([created]).when({ type: 'Revoke' }).then([revoked]);
    given([]).when({ type: 'Revoke' }).refused('not_found');
    deepEqual(state([created]), { status: 'active', hash: 'one', expiresAt, mode: 'live' });
    const rotated: ApiKeyEvent = {
      type: 'ApiKeyRotated',
      data: { hash: 'two', prefix: 'p', previousHash: 'one', previousUntil: expiresAt },
    };
    deepEqual(state([created, revoked, rotated]), { status: 'revoked', hash: 'two', expiresAt, mode: 'live' });
    deepEqual(state([rotated, revoked]), apikey.initial);
  });
});
