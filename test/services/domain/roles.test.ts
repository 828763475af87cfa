import { deepEqual, equal } from 'node:assert/strict';
import { isAtLeast, mayManage, roleAllows, scopesOf } from '#domain/roles.ts';
import { scopes } from '#schemas/apikey.ts';
import { roles } from '#schemas/common.ts';
import { suite } from '#test/support/suite.ts';

const reading = [
  'agency.read',
  'clients.read',
  'accounts.read',
  'posts.read',
  'analytics.read',
  'reports.read',
  'besttimes.read',
  'media.read',
  'approvals.read',
  'campaigns.read',
  'webhooks.read',
];

suite('roles', (t) => {
  t('each is at least what those behind it are', () => {
    deepEqual(
      roles.map((role) => roles.filter((least) => isAtLeast(role, least))),
      [roles, ['manager', 'creator', 'viewer'], ['creator', 'viewer'], ['viewer']],
    );
  });

  t('owners give and take all, managers those of creators and viewers, others none', () => {
    deepEqual(
      roles.map((by) => roles.filter((role) => mayManage(by, role))),
      [roles, ['creator', 'viewer'], [], []],
    );
  });

  t('an owner may do everything, a manager all but reading the events', () => {
    deepEqual(scopesOf('owner'), scopes);
    deepEqual(
      scopesOf('manager'),
      scopes.filter((scope) => scope !== 'events.read'),
    );
  });

  t('a creator reads, composes and manages media; a viewer reads', () => {
    deepEqual([...scopesOf('creator')].sort(), [...reading, 'media.manage', 'posts.compose'].sort());
    deepEqual([...scopesOf('viewer')].sort(), [...reading].sort());
  });

  t('answers as its list does', () => {
    for (const role of roles) {
      for (const scope of scopes) equal(roleAllows(role, scope), scopesOf(role).includes(scope), `${role} ${scope}`);
    }
    equal(roleAllows('creator', 'approvals.decide'), false);
    equal(roleAllows('viewer', 'posts.compose'), false);
    equal(roleAllows('manager', 'events.read'), false);
  });
});
