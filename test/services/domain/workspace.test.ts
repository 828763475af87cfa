import { deepEqual } from 'node:assert/strict';
import { workspace } from '#domain/workspace.ts';
import type { WorkspaceEvent } from '#schemas/workspace.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(workspace);

const created: WorkspaceEvent = {
  type: 'WorkspaceCreated',
  data: { name: 'North', timezone: 'Europe/Paris', mode: 'live', twinOf: null },
};
const ann: WorkspaceEvent = { type: 'MemberAdded', data: { memberId: 'ann', name: 'Ann', role: 'owner' } };
const bob: WorkspaceEvent = { type: 'MemberAdded', data: { memberId: 'bob', name: 'Bob', role: 'creator' } };
const bobOwns: WorkspaceEvent = { type: 'MemberRoleChanged', data: { memberId: 'bob', role: 'owner' } };
const twin: WorkspaceEvent = {
  type: 'WorkspaceCreated',
  data: { name: 'North', timezone: 'UTC', mode: 'test', twinOf: 'north' },
};
const create = {
  type: 'Create',
  name: 'North',
  timezone: 'Europe/Paris',
  owner: { memberId: 'ann', name: 'Ann' },
} as const;

suite('workspace', (t) => {
  t('is created with its Owner', () => given([]).when(create).then([created, ann]));

  t('is created once, whatever a second command holds', () =>
    given([created, ann])
      .when({ ...create, name: 'Other' })
      .then([]),
  );

  t('has a twin without members', () =>
    given([]).when({ type: 'CreateTwin', name: 'North', timezone: 'UTC', twinOf: 'north' }).then([twin]),
  );

  t('makes the twin once', () =>
    given([twin]).when({ type: 'CreateTwin', name: 'Changed', timezone: 'UTC', twinOf: 'north' }).then([]),
  );

  t('gives the twin no members: they belong to the live workspace', () =>
    given([twin])
      .when({ type: 'AddMember', memberId: 'bob', name: 'Bob', role: 'viewer' })
      .refused('validation_failed'),
  );

  t('changes name and zone', () => {
    const profile = { name: 'South', timezone: 'Asia/Tokyo' };
    given([created, ann])
      .when({ type: 'ChangeProfile', ...profile })
      .then([{ type: 'WorkspaceProfileChanged', data: profile }]);
    const now = { name: 'North', timezone: 'Europe/Paris' };
    given([created, ann])
      .when({ type: 'ChangeProfile', ...now })
      .then([]);
    for (const half of [{ name: 'South' }, { timezone: 'Asia/Tokyo' }]) {
      given([created, ann])
        .when({ type: 'ChangeProfile', ...now, ...half })
        .then([{ type: 'WorkspaceProfileChanged', data: { ...now, ...half } }]);
    }
  });

  t('adds a member once', () => {
    const add = { type: 'AddMember', memberId: 'bob', name: 'Bob', role: 'creator' } as const;
    given([created, ann]).when(add).then([bob]);
    given([created, ann, bob])
      .when({ ...add, role: 'owner' })
      .then([]);
  });

  t('changes a role', () => {
    given([created, ann, bob]).when({ type: 'ChangeRole', memberId: 'bob', role: 'owner' }).then([bobOwns]);
    given([created, ann]).when({ type: 'ChangeRole', memberId: 'bob', role: 'owner' }).refused('not_found');
  });

  t('keeps at least one Owner', () => {
    const demote = { type: 'ChangeRole', memberId: 'ann', role: 'viewer' } as const;
    const remove = { type: 'RemoveMember', memberId: 'ann' } as const;
    for (const command of [demote, remove]) given([created, ann, bob]).when(command).refused('validation_failed');
    given([created, ann, bob, bobOwns])
      .when(demote)
      .then([{ type: 'MemberRoleChanged', data: { memberId: 'ann', role: 'viewer' } }]);
    given([created, ann, bob, bobOwns])
      .when(remove)
      .then([{ type: 'MemberRemoved', data: { memberId: 'ann' } }]);
  });

  t('without an Owner, a member can still leave or become one', () => {
    given([created, bob])
      .when({ type: 'RemoveMember', memberId: 'bob' })
      .then([{ type: 'MemberRemoved', data: { memberId: 'bob' } }]);
    given([created, bob]).when({ type: 'ChangeRole', memberId: 'bob', role: 'owner' }).then([bobOwns]);
  });

  t('of two Owners who leave at once only one can, because the second command sees the first’s event', () =>
    given([created, ann, bob, bobOwns, { type: 'MemberRemoved', data: { memberId: 'bob' } }])
      .when({ type: 'RemoveMember', memberId: 'ann' })
      .refused('validation_failed'),
  );

  t('removes a member; a repeat gives no event', () => {
    given([created, ann, bob])
      .when({ type: 'RemoveMember', memberId: 'bob' })
      .then([{ type: 'MemberRemoved', data: { memberId: 'bob' } }]);
    given([created, ann]).when({ type: 'RemoveMember', memberId: 'bob' }).then([]);
  });

  t('has no posting quota until an operator sets one, and sets each once', () => {
    const set = (limit: number | null): WorkspaceEvent => ({ type: 'PostingQuotaSet', data: { limit } });
    given([created]).when({ type: 'SetPostingQuota', limit: null }).then([]);
    given([created])
      .when({ type: 'SetPostingQuota', limit: 0 })
      .then([set(0)]);
    given([created, set(9)])
      .when({ type: 'SetPostingQuota', limit: null })
      .then([set(null)]);
    given([created, set(9)])
      .when({ type: 'SetPostingQuota', limit: 9 })
      .then([]);
  });

  t('lets the clock of a sandbox twin go ahead alone, and never that of a live workspace', () => {
    const twin: WorkspaceEvent = { type: 'WorkspaceCreated', data: { ...created.data, mode: 'test', twinOf: 'live' } };
    const moved = (aheadMs: number): WorkspaceEvent => ({ type: 'SandboxClockMoved', data: { aheadMs } });
    given([twin])
      .when({ type: 'MoveSandboxClock', aheadMs: 5 })
      .then([moved(5)]);
    for (const aheadMs of [4, 5])
      given([twin, moved(5)])
        .when({ type: 'MoveSandboxClock', aheadMs })
        .then([]);
    given([created]).when({ type: 'MoveSandboxClock', aheadMs: 5 }).refused('sandbox_only');
    given([]).when({ type: 'MoveSandboxClock', aheadMs: 5 }).refused('not_found');
  });

  t('is told of each version of a network’s API that ends, once for each stage of it', () => {
    const ending = { platform: 'linkedin', version: '202511', endsAt: '2026-11-16' } as const;
    const reported = (stage: 'ends_in_90_days' | 'ends_in_30_days' | 'ended', version = '202511'): WorkspaceEvent => ({
      type: 'NetworkVersionEndReported',
      data: { ...ending, version, stage },
    });
    const tell = (stage: 'ends_in_90_days' | 'ends_in_30_days' | 'ended', version = '202511') =>
      ({ type: 'ReportVersionEnd', ...ending, version, stage }) as const;
    given([created])
      .when(tell('ends_in_90_days'))
      .then([reported('ends_in_90_days')]);
    given([created, reported('ends_in_90_days')])
      .when(tell('ends_in_90_days'))
      .then([]);
    given([created, reported('ends_in_90_days'), reported('ends_in_30_days')])
      .when(tell('ends_in_90_days'))
      .then([]);
    given([created, reported('ends_in_90_days')])
      .when(tell('ended'))
      .then([reported('ended')]);
    given([created, reported('ended')])
      .when(tell('ends_in_90_days', '202602'))
      .then([reported('ends_in_90_days', '202602')]);
    given([created, reported('ended'), reported('ends_in_90_days', '202602')])
      .when(tell('ends_in_90_days', '202602'))
      .then([]);
    given([]).when(tell('ended')).refused('not_found');
  });

  t('has no rule of how often its accounts publish until an operator sets one, for each network once', () => {
    const set = (platform: 'x' | null, perDay: number | null): WorkspaceEvent => ({
      type: 'CadenceSet',
      data: { platform, minIntervalMinutes: null, perDay },
    });
    const command = ({ data }: WorkspaceEvent) => ({ type: 'SetCadence', rule: data }) as never;
    given([created])
      .when(command(set('x', null)))
      .then([]);
    given([created, set(null, 5)])
      .when(command(set('x', 5)))
      .then([set('x', 5)]);
    given([created, set('x', 5)])
      .when(command(set('x', 5)))
      .then([]);
    given([created, set('x', 5)])
      .when(command(set('x', null)))
      .then([set('x', null)]);
  });

  t('must exist before it changes', () => {
    given([]).when({ type: 'SetPostingQuota', limit: 1 }).refused('not_found');
    given([]).when({ type: 'ChangeProfile', name: 'N', timezone: 'UTC' }).refused('not_found');
    given([]).when({ type: 'AddMember', memberId: 'bob', name: 'Bob', role: 'viewer' }).refused('not_found');
    given([]).when({ type: 'ChangeRole', memberId: 'bob', role: 'viewer' }).refused('not_found');
    given([]).when({ type: 'RemoveMember', memberId: 'bob' }).refused('not_found');
  });

  t('folds every event, and ignores one that does not fit', () => {
    const profile: WorkspaceEvent = { type: 'WorkspaceProfileChanged', data: { name: 'South', timezone: 'UTC' } };
    deepEqual(state([created, ann, bob, bobOwns, profile, { type: 'MemberRemoved', data: { memberId: 'ann' } }]), {
      status: 'created',
      name: 'South',
      timezone: 'UTC',
      mode: 'live',
      twinOf: null,
      members: { bob: { name: 'Bob', role: 'owner' } },
      postingQuota: null,
      cadence: [],
      aheadMs: 0,
      versions: {},
    });
    deepEqual(state([ann, profile]), workspace.initial);
    deepEqual(state([created, bobOwns]), state([created]));
  });
});
