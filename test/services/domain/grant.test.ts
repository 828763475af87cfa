import { deepEqual } from 'node:assert/strict';
import { type GrantCommand, grant } from '#domain/grant.ts';
import { type GrantEvent, grantEnders } from '#schemas/grant.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(grant);

const now = '2026-01-01T00:00:00.000Z';
const give = {
  type: 'Give',
  now,
  clientId: 'https://app.example/client.json',
  clientName: 'An app',
  personId: 'ann',
  memberId: 'ann in north star',
  mode: 'test',
  scopes: ['posts.read', 'posts.compose'],
  resource: 'https://api.example/v1',
  expiresAt: '2027-01-02T00:00:00.000Z',
} as const satisfies GrantCommand;
const { type: _type, now: _now, ...data } = give;
const givenOnce: GrantEvent = { type: 'GrantGiven', data: { ...data, scopes: [...data.scopes] } };
const revoked = (by: (typeof grantEnders)[number]): GrantEvent => ({ type: 'GrantRevoked', data: { by } });

suite('grant', (t) => {
  t('is given once, with each scope once', () => {
    given([])
      .when({ ...give, scopes: ['posts.read', 'posts.compose', 'posts.read'] })
      .then([givenOnce]);
    given([givenOnce])
      .when({ ...give, scopes: ['media.read'] })
      .then([]);
  });

  t('needs scopes, each one that can be given to an app', () => {
    for (const scopes of [[], ['posts.readd'], ['posts.read', 'webhooks.manage'], ['__proto__']]) {
      given([])
        .when({ ...give, scopes })
        .refused('validation_failed', 'campaigns.manage.');
    }
  });

  t('may give powers over clients, connections, campaigns and reports', () => {
    const scopes = [
      'clients.manage',
      'accounts.connect',
      'reports.manage',
      'campaigns.read',
      'campaigns.manage',
    ] as const;
    given([])
      .when({ ...give, scopes })
      .then([{ type: 'GrantGiven', data: { ...data, scopes: [...scopes] } }]);
  });

  t('expires after now and within a year', () => {
    const until = (ms: number) => given([]).when({ ...give, expiresAt: new Date(Date.parse(now) + ms).toISOString() });
    for (const ms of [0, -1, 366 * 86_400_000 + 1]) until(ms).refused('validation_failed', 'within one year');
    given([])
      .when({ ...give, expiresAt: 'soon' })
      .refused('validation_failed');
    given([]).when(give).then([givenOnce]);
  });

  t('is revoked once, whoever ends it, and stays revoked', () => {
    for (const by of grantEnders) {
      given([givenOnce])
        .when({ type: 'Revoke', by })
        .then([revoked(by)]);
    }
    given([givenOnce, revoked('person')])
      .when({ type: 'Revoke', by: 'reuse' })
      .then([]);
    given([givenOnce, revoked('person')])
      .when(give)
      .then([]);
    given([]).when({ type: 'Revoke', by: 'person' }).refused('not_found');
    const { clientId, personId, memberId, mode, expiresAt } = data;
    const known = { clientId, personId, memberId, mode, expiresAt };
    deepEqual(state([givenOnce]), { status: 'active', ...known });
    deepEqual(state([givenOnce, revoked('client')]), { status: 'revoked', ...known });
    deepEqual(state([revoked('client')]), grant.initial);
  });
});
