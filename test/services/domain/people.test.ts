import { deepEqual } from 'node:assert/strict';
import { maxPasskeys, type PersonCommand, person } from '#domain/person.ts';
import { personemail } from '#domain/personemail.ts';
import { session } from '#domain/session.ts';
import { type TeamInviteCommand, teaminvite } from '#domain/teaminvite.ts';
import { workspace } from '#domain/workspace.ts';
import type { PersonEvent } from '#schemas/person.ts';
import type { TeamInviteEvent } from '#schemas/teaminvite.ts';
import type { WorkspaceEvent } from '#schemas/workspace.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const register = {
  type: 'Register',
  personId: 'p1',
  email: 'ann@acme.test',
  name: 'Ann',
} as const satisfies PersonCommand;
const registered: PersonEvent = {
  type: 'PersonRegistered',
  data: { personId: 'p1', email: 'ann@acme.test', name: 'Ann' },
};

suite('person', (t) => {
  const { given, state } = deciding(person);

  t('is registered once', () => {
    given([]).when(register).then([registered]);
    given([registered])
      .when({ ...register, name: 'Other' })
      .then([]);
  });

  t('exists before anything is set', () => {
    for (const command of [
      { type: 'SetPassword', by: 'changed' },
      { type: 'ProveEmail', by: 'operator' },
      { type: 'AddPasskey', passkeyId: 'k1' },
      { type: 'RemovePasskey', passkeyId: 'k1' },
      { type: 'EnableSecondFactor' },
      { type: 'DisableSecondFactor' },
      { type: 'ReplaceRecoveryCodes' },
      { type: 'UseRecoveryCode' },
    ] as const) {
      given([]).when(command).refused('not_found');
      given([registered, { type: 'PersonErased', data: {} }])
        .when(command)
        .refused('not_found');
    }
  });

  t('has each passkey once, and a bounded number', () => {
    const added = (passkeyId: string): PersonEvent => ({ type: 'PasskeyAdded', data: { passkeyId } });
    given([registered])
      .when({ type: 'AddPasskey', passkeyId: 'k1' })
      .then([added('k1')]);
    given([registered, added('k1')])
      .when({ type: 'AddPasskey', passkeyId: 'k1' })
      .then([]);
    given([registered, added('k1')])
      .when({ type: 'RemovePasskey', passkeyId: 'k1' })
      .then([{ type: 'PasskeyRemoved', data: { passkeyId: 'k1' } }]);
    given([registered, added('k1')])
      .when({ type: 'RemovePasskey', passkeyId: 'k2' })
      .then([]);
    const many = Array.from({ length: maxPasskeys }, (_, at) => added(`k${at}`));
    given([registered, ...many])
      .when({ type: 'AddPasskey', passkeyId: 'one more' })
      .refused('validation_failed');
    given([registered, ...many, { type: 'PasskeyRemoved', data: { passkeyId: 'k0' } }])
      .when({ type: 'AddPasskey', passkeyId: 'one more' })
      .then([added('one more')]);
    const left = state([registered, added('k1'), added('k2'), { type: 'PasskeyRemoved', data: { passkeyId: 'k1' } }]);
    deepEqual(left.status === 'registered' && left.passkeyIds, ['k2']);
  });

  t('gets new recovery codes and uses one, each time that it is told', () => {
    const replaced: PersonEvent = { type: 'RecoveryCodesReplaced', data: {} };
    const used: PersonEvent = { type: 'RecoveryCodeUsed', data: {} };
    given([registered])
      .when({ type: 'ReplaceRecoveryCodes' })
      .then([replaced], { again: [replaced] });
    given([registered])
      .when({ type: 'UseRecoveryCode' })
      .then([used], { again: [used] });
  });

  t('is nobody before the registration, and what comes after the erasure changes nothing', () => {
    deepEqual(state([]), { status: 'none' });
    deepEqual(state([{ type: 'EmailProven', data: { by: 'link' } }]), { status: 'none' });
    const erased: PersonEvent = { type: 'PersonErased', data: {} };
    for (const type of ['SecondFactorEnabled', 'SecondFactorDisabled'] as const) {
      deepEqual(state([registered, erased, { type, data: {} }]), { status: 'erased' });
    }
  });

  t('has its address proven once, and what is older ends in the same append', () => {
    const proven: PersonEvent = { type: 'EmailProven', data: { by: 'link' } };
    const removes = { passkeys: true, secondFactor: true };
    const older: readonly PersonEvent[] = [
      registered,
      { type: 'PasskeyAdded', data: { passkeyId: 'k1' } },
      { type: 'SecondFactorEnabled', data: {} },
    ];
    const ended: readonly PersonEvent[] = [
      { type: 'PasskeyRemoved', data: { passkeyId: 'k1' } },
      { type: 'SecondFactorDisabled', data: {} },
    ];
    given(older)
      .when({ type: 'ProveEmail', by: 'link', removes })
      .then([...ended, proven]);
    given(older)
      .when({ type: 'ProveEmail', by: 'operator' })
      .then([{ type: 'EmailProven', data: { by: 'operator' } }]);
    given([...older, proven])
      .when({ type: 'ProveEmail', by: 'operator' })
      .then([]);
    const changed: PersonEvent = { type: 'PasswordSet', data: { by: 'changed' } };
    given([registered])
      .when({ type: 'SetPassword', by: 'changed' })
      .then([changed], { again: [changed] });
    const set: PersonEvent = { type: 'PasswordSet', data: { by: 'reset' } };
    const reset = { type: 'SetPassword', by: 'reset', proves: 'link' } as const;
    deepEqual(person.decide({ ...reset, removes }, state(older)), [set, ...ended, proven]);
    const kept = { passkeys: true, secondFactor: false };
    deepEqual(person.decide({ ...reset, removes: kept }, state([...older, proven])), [set, ended[0]]);
  });

  t('turns the second factor on and off once', () => {
    const on: PersonEvent = { type: 'SecondFactorEnabled', data: {} };
    const off: PersonEvent = { type: 'SecondFactorDisabled', data: {} };
    given([registered]).when({ type: 'EnableSecondFactor' }).then([on]);
    given([registered, on]).when({ type: 'EnableSecondFactor' }).then([]);
    given([registered, on]).when({ type: 'DisableSecondFactor' }).then([off]);
    given([registered, on, off]).when({ type: 'DisableSecondFactor' }).then([]);
  });

  t('is erased once, and never registered again', () => {
    const erased: PersonEvent = { type: 'PersonErased', data: {} };
    given([registered]).when({ type: 'Erase' }).then([erased]);
    given([registered, erased]).when({ type: 'Erase' }).then([]);
    given([]).when({ type: 'Erase' }).then([]);
    given([registered, erased]).when(register).refused('already_exists');
    deepEqual(state([registered, erased]), { status: 'erased' });
  });
});

suite('claim on an e-mail address', (t) => {
  const { given, state } = deciding(personemail);
  const claimed = { type: 'EmailClaimed', data: { personId: 'p1' } } as const;
  const released = { type: 'EmailReleased', data: { personId: 'p1' } } as const;

  t('belongs to one person until it is released', () => {
    given([]).when({ type: 'Claim', personId: 'p1' }).then([claimed]);
    given([claimed]).when({ type: 'Claim', personId: 'p1' }).then([]);
    given([claimed]).when({ type: 'Claim', personId: 'p2' }).refused('already_exists');
    given([claimed]).when({ type: 'Release', personId: 'p2' }).then([]);
    given([claimed]).when({ type: 'Release', personId: 'p1' }).then([released]);
    given([claimed, released])
      .when({ type: 'Claim', personId: 'p2' })
      .then([{ type: 'EmailClaimed', data: { personId: 'p2' } }]);
    for (const free of [[], [claimed, released]]) deepEqual(state(free), { status: 'free' });
  });
});

suite('session', (t) => {
  const { given, state } = deciding(session);
  const start = { type: 'Start', personId: 'p1', by: 'password', expiresAt: '2026-01-01T00:00:00.000Z' } as const;
  const { type: _type, ...data } = start;
  const started = { type: 'SessionStarted', data } as const;
  const ended = { type: 'SessionRevoked', data: { reason: 'revoked' } } as const;

  t('starts once and ends once', () => {
    given([]).when(start).then([started]);
    given([started]).when(start).then([]);
    given([]).when({ type: 'End', reason: 'revoked' }).then([]);
    given([started]).when({ type: 'End', reason: 'revoked' }).then([ended]);
    given([started, ended]).when({ type: 'End', reason: 'signed_out' }).then([]);
    given([started, ended]).when(start).then([]);
    deepEqual(state([started, ended]), { status: 'ended' });
  });
});

const now = '2026-01-01T00:00:00.000Z';
const create = {
  type: 'Create',
  inviteId: 'i1',
  memberId: 'm1',
  email: 'ann@acme.test',
  name: 'Ann',
  role: 'creator',
  now,
  expiresAt: '2026-01-08T00:00:00.000Z',
  keyVersion: 'v1',
} as const satisfies TeamInviteCommand;

suite('invitation to the team', (t) => {
  const { given, state } = deciding(teaminvite);
  const { type: _type, now: _now, ...data } = create;
  const created: TeamInviteEvent = { type: 'TeamInviteCreated', data };
  const accepted: TeamInviteEvent = { type: 'TeamInviteAccepted', data: { personId: 'p1' } };
  const revoked: TeamInviteEvent = { type: 'TeamInviteRevoked', data: {} };

  t('lives after now and at most 30 days', () => {
    given([]).when(create).then([created]);
    given([created]).when(create).then([]);
    for (const expiresAt of [now, '2025-12-31T00:00:00.000Z', '2026-01-31T00:00:00.001Z']) {
      for (const saying of ['/expiresAt out_of_range', '/expiresAt must be after now and within 30 days']) {
        given([])
          .when({ ...create, expiresAt })
          .refused('validation_failed', saying);
      }
    }
    given([])
      .when({ ...create, expiresAt: '2026-01-31T00:00:00.000Z' })
      .then([{ ...created, data: { ...data, expiresAt: '2026-01-31T00:00:00.000Z' } }]);
  });

  t('is accepted by one person, before it ends', () => {
    const accept = { type: 'Accept', personId: 'p1', now } as const;
    given([created]).when(accept).then([accepted]);
    given([created, accepted])
      .when({ ...accept, now: '2027-01-01T00:00:00.000Z' })
      .then([]);
    given([created, accepted])
      .when({ ...accept, personId: 'p2' })
      .refused('not_found');
    given([created])
      .when({ ...accept, now: create.expiresAt })
      .refused('not_found');
    given([created, revoked]).when(accept).refused('not_found');
    given([]).when(accept).refused('not_found');
  });

  t('is revoked while it is open', () => {
    given([created]).when({ type: 'Revoke' }).then([revoked]);
    given([created, revoked]).when({ type: 'Revoke' }).then([]);
    given([created, accepted]).when({ type: 'Revoke' }).then([]);
    given([]).when({ type: 'Revoke' }).refused('not_found');
  });

  t('stays accepted or revoked, whatever comes after', () => {
    const { inviteId: _invite, ...open } = data;
    for (const later of [accepted, revoked]) {
      deepEqual(state([created, accepted, later]), { status: 'accepted', personId: 'p1', memberId: 'm1' });
      deepEqual(state([created, revoked, later]), { ...open, status: 'revoked' });
      deepEqual(state([later]), { status: 'none' });
    }
  });
});

suite('a person joins a workspace', (t) => {
  const { given } = deciding(workspace);
  const made: WorkspaceEvent = {
    type: 'WorkspaceCreated',
    data: { name: 'North Star', timezone: 'UTC', mode: 'live', twinOf: null },
  };
  const owner: WorkspaceEvent = { type: 'MemberAdded', data: { memberId: 'm1', name: 'Olga', role: 'owner' } };
  const identified: WorkspaceEvent = { type: 'MemberIdentified', data: { memberId: 'm1', personId: 'p1' } };
  const join = { type: 'Join', memberId: 'm2', personId: 'p2', name: 'Ann', role: 'creator' } as const;

  t('as a new member, or in the place of one that an operator made', () => {
    given([made, owner])
      .when(join)
      .then([
        { type: 'MemberAdded', data: { memberId: 'm2', name: 'Ann', role: 'creator' } },
        { type: 'MemberIdentified', data: { memberId: 'm2', personId: 'p2' } },
      ]);
    given([made, owner])
      .when({ ...join, memberId: 'm1', personId: 'p1' })
      .then([identified]);
  });

  t('once, and never in the place of another person', () => {
    given([made, owner, identified])
      .when({ ...join, memberId: 'm1', personId: 'p1' })
      .then([]);
    given([made, owner, identified])
      .when({ ...join, personId: 'p1' })
      .refused('already_exists');
    given([made, owner, identified])
      .when({ ...join, memberId: 'm1' })
      .refused('already_exists');
  });

  t('anew after the member was removed', () => {
    const second: WorkspaceEvent = { type: 'MemberAdded', data: { memberId: 'm3', name: 'Eva', role: 'owner' } };
    given([made, owner, identified, second, { type: 'MemberRemoved', data: { memberId: 'm1' } }])
      .when({ ...join, personId: 'p1' })
      .then([
        { type: 'MemberAdded', data: { memberId: 'm2', name: 'Ann', role: 'creator' } },
        { type: 'MemberIdentified', data: { memberId: 'm2', personId: 'p1' } },
      ]);
  });

  t('the live one, never its sandbox twin', () => {
    given([{ ...made, data: { ...made.data, mode: 'test', twinOf: 'w1' } } as WorkspaceEvent])
      .when(join)
      .refused('validation_failed');
    given([]).when(join).refused('not_found');
  });
});
