import { deepEqual, equal } from 'node:assert/strict';
import { invite, isUsable } from '#domain/invite.ts';
import type { InviteEvent } from '#schemas/invite.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(invite);

const before = '2026-01-01T00:00:00.000Z';
const expiresAt = '2026-01-03T00:00:00.000Z';
const fields = { clientId: 'acme', expiresAt, keyVersion: 'v1', recipientEmail: 'ann@example.com', maxAccounts: 3 };
const created: InviteEvent = { type: 'ConnectInviteCreated', data: { ...fields, platforms: ['x', 'tiktok'] } };
const used = (accountId: string): InviteEvent => ({ type: 'ConnectInviteUsed', data: { accountId, platform: 'x' } });
const revoked: InviteEvent = { type: 'ConnectInviteRevoked', data: { reason: null } };
const use = { type: 'Use', now: before, accountId: 'one', platform: 'x' } as const;

suite('invite', (t) => {
  t('is created once, each platform named once', () => {
    given([])
      .when({ type: 'Create', ...fields, platforms: ['x', 'tiktok', 'x'] })
      .then([created]);
    given([created])
      .when({ type: 'Create', ...fields, platforms: ['bluesky'] })
      .then([]);
  });

  t('connects several accounts, each once', () => {
    given([created])
      .when(use)
      .then([used('one')]);
    given([created, used('one')])
      .when({ ...use, accountId: 'two' })
      .then([used('two')]);
    given([created, used('one')])
      .when(use)
      .then([]);
  });

  t('connects at most the given number of accounts; connected ones may return any number of times', () => {
    const full = [created, used('one'), used('two'), used('three')];
    given(full.slice(0, 3))
      .when({ ...use, accountId: 'three' })
      .then([used('three')]);
    given(full)
      .when({ ...use, accountId: 'four' })
      .refused('invite_full');
    given(full)
      .when({ ...use, accountId: 'two' })
      .then([]);
    const { maxAccounts: _, ...older } = fields;
    const before: InviteEvent = { type: 'ConnectInviteCreated', data: { ...older, platforms: ['x'] } };
    const fifty = Array.from({ length: 50 }, (_one, n) => used(`${n}`));
    given([before, ...fifty.slice(1)])
      .when(use)
      .then([used('one')]);
    given([before, ...fifty])
      .when(use)
      .refused('invite_full');
  });

  t('connects only its own platforms', () =>
    given([created])
      .when({ ...use, platform: 'bluesky' })
      .refused('validation_failed'),
  );

  t('refuses an unknown, a revoked and an expired link with the same message, exactly from its expiry on', () => {
    given([]).when(use).refused('not_found');
    given([created, revoked]).when(use).refused('not_found');
    deepEqual(state([created, revoked]), { ...state([created]), status: 'revoked' });
    given([created])
      .when({ ...use, now: expiresAt })
      .refused('not_found');
    given([created])
      .when({ ...use, now: '2026-01-02T23:59:59.999Z' })
      .then([used('one')]);
  });

  t('is revoked once; an unknown one stays unknown', () => {
    given([created])
      .when({ type: 'Revoke', reason: 'client_archived' })
      .then([{ type: 'ConnectInviteRevoked', data: { reason: 'client_archived' } }]);
    given([]).when({ type: 'Revoke', reason: null }).then([]);
  });

  t('keeps no address in its state', () => {
    const now = state([created, used('one')]);
    deepEqual(now, {
      status: 'open',
      clientId: 'acme',
      platforms: ['x', 'tiktok'],
      expiresAt,
      keyVersion: 'v1',
      accountIds: ['one'],
      maxAccounts: 3,
    });
    equal(isUsable(now, before), true);
    equal(isUsable(now, expiresAt), false);
    equal(isUsable(state([created, revoked]), before), false);
    for (const event of [used('one'), revoked]) deepEqual(state([event]), invite.initial);
  });
});
