import { deepEqual } from 'node:assert/strict';
import { account } from '#domain/account.ts';
import type { AccountEvent } from '#schemas/account.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(account);

const grant = {
  username: 'acme',
  displayName: 'Acme',
  avatarUrl: null,
  scopes: ['publish'],
  expiresAt: '2026-06-01T00:00:00.000Z',
  timezone: 'Europe/Paris',
};
const identity = { clientId: 'c1', platform: 'x', externalId: '42', network: 'sandbox' } as const;
const connect = { type: 'Connect', ...identity, ...grant, inviteId: 'i1' } as const;
const connected: AccountEvent = { type: 'AccountConnected', data: { ...identity, ...grant, inviteId: 'i1' } };
const reauthorized = (over: Partial<typeof grant> = {}, inviteId = 'i1'): AccountEvent => ({
  type: 'AccountReauthorized',
  data: { clientId: 'c1', ...grant, ...over, inviteId },
});
const lapsed: AccountEvent = { type: 'AccountReauthRequired', data: { reason: 'revoked' } };
const gone: AccountEvent = { type: 'AccountDisconnected', data: { reason: 'by its owner' } };

suite('account', (t) => {
  t('is connected once', () => {
    given([]).when(connect).then([connected]);
    given([connected]).when(connect).then([]);
    given([connected, lapsed, reauthorized({}, 'i2')])
      .when({ ...connect, inviteId: 'i2' })
      .then([]);
  });

  t('keeps its stream when it is reconnected', () => {
    for (const before of [lapsed, gone]) given([connected, before]).when(connect).then([reauthorized()]);
  });

  t('records a new consent with the same grants: the token is new, though the old one was not reported', () => {
    given([connected])
      .when({ ...connect, inviteId: 'i2' })
      .then([reauthorized({}, 'i2')]);
  });

  t('records a new grant, whichever part of it changed', () => {
    for (const over of [
      { username: 'acme2' },
      { displayName: 'Acme Two' },
      { scopes: ['publish', 'read'] },
      { expiresAt: '2026-09-01T00:00:00.000Z' },
      { timezone: 'UTC' },
    ]) {
      given([connected])
        .when({ ...connect, ...over })
        .then([reauthorized(over)]);
    }
  });

  t('records once that a person must sign in again, and once more after each reconnection', () => {
    const require = { type: 'RequireReauth', reason: 'revoked' } as const;
    given([connected]).when(require).then([lapsed]);
    given([connected, lapsed, reauthorized()]).when(require).then([lapsed]);
    given([connected, gone]).when(require).then([]);
    given([]).when(require).then([]);
  });

  t('takes another profile while it is connected, each once', () => {
    const { username, displayName, avatarUrl } = grant;
    const shown = { username, displayName, avatarUrl };
    type More = Partial<Record<keyof typeof shown, string | null>>;
    const changed = (more: More) => ({ type: 'ChangeProfile', ...shown, ...more }) as const;
    const event = (more: More): AccountEvent => ({
      type: 'AccountProfileChanged',
      data: { clientId: identity.clientId, ...shown, ...more },
    });
    given([connected]).when(changed({})).then([]);
    const others: More[] = [{ username: 'new' }, { displayName: null }, { avatarUrl: 'https://example.com/b.png' }];
    for (const more of others)
      given([connected])
        .when(changed(more))
        .then([event(more)]);
    given([connected, event({ displayName: 'B' })])
      .when(changed({}))
      .then([event({})]);
    given([connected, lapsed])
      .when(changed({ username: 'new' }))
      .then([]);
    given([connected, gone])
      .when(changed({ username: 'new' }))
      .then([]);
    given([]).when(changed({})).then([]);
  });

  t('is forgotten with its owner, in every state, once', () => {
    const forget = { type: 'ForgetOwner', reason: 'they asked for it' } as const;
    const left: AccountEvent = { type: 'AccountDisconnected', data: { reason: 'they asked for it' } };
    const blank: AccountEvent = {
      type: 'AccountProfileChanged',
      data: { clientId: identity.clientId, username: null, displayName: null, avatarUrl: null },
    };
    given([connected]).when(forget).then([blank, left]);
    given([connected, lapsed]).when(forget).then([blank, left]);
    given([connected, gone]).when(forget).then([blank]);
    given([connected, blank]).when(forget).then([left]);
    given([connected, blank, left]).when(forget).then([]);
    given([connected, blank, left, reauthorized()]).when(forget).then([blank, left]);
    given([]).when(forget).then([]);
  });

  t('keeps the limits that its network reports, each report once', () => {
    const windows = [{ name: '24 hours', seconds: 86_400, limit: 50, used: 3, resetsAt: null }];
    const event = (of: typeof windows): AccountEvent => ({
      type: 'AccountLimitsObserved',
      data: { clientId: identity.clientId, windows: of },
    });
    given([connected]).when({ type: 'ObserveLimits', windows: [] }).then([]);
    given([connected])
      .when({ type: 'ObserveLimits', windows })
      .then([event(windows)]);
    given([connected, event(windows)])
      .when({ type: 'ObserveLimits', windows: [] })
      .then([event([])]);
    given([]).when({ type: 'ObserveLimits', windows }).then([]);
  });

  t('is disconnected once', () => {
    const disconnect = { type: 'Disconnect', reason: 'by its owner' } as const;
    given([connected]).when(disconnect).then([gone]);
    given([connected, lapsed]).when(disconnect).then([gone]);
    given([]).when(disconnect).refused('not_found');
  });

  t('folds every event, and ignores one that does not fit', () => {
    const profile: AccountEvent = {
      type: 'AccountProfileChanged',
      data: { clientId: 'c1', username: 'new', displayName: 'New', avatarUrl: null },
    };
    const expected = { status: 'connected', ...identity, ...grant, inviteId: 'i1', observed: [] };
    deepEqual(state([connected]), expected);
    deepEqual(state([connected, profile]), { ...expected, username: 'new', displayName: 'New' });
    deepEqual(state([connected, lapsed]), { ...expected, status: 'reauth_required' });
    deepEqual(state([connected, lapsed, gone]), { ...expected, status: 'disconnected' });
    deepEqual(state([connected, gone, reauthorized({ timezone: 'UTC' })]), { ...expected, timezone: 'UTC' });
    for (const event of [profile, lapsed, gone, reauthorized()]) deepEqual(state([event]), account.initial);
  });
});
