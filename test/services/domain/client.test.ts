import { deepEqual, equal } from 'node:assert/strict';
import { bearsName, client, letsLateFail, retriesWhenAbsent } from '#domain/client.ts';
import { birthOf } from '#domain/decider.ts';
import type { ClientEvent } from '#schemas/client.ts';
import { deciding } from '#test/support/deciding.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(client);

const created: ClientEvent = { type: 'ClientCreated', data: clientFields };
const archived: ClientEvent = { type: 'ClientArchived', data: {} };
const erased: ClientEvent = { type: 'ClientErased', data: {} };
const lapsed: ClientEvent = { type: 'ClientNameClaimLapsed', data: { name: 'Acme' } };

suite('client', (t) => {
  t('is created once', () => {
    given([]).when({ type: 'Create', fields: clientFields }).then([created]);
    given([created])
      .when({ type: 'Create', fields: { ...clientFields, name: 'Other' } })
      .then([]);
  });

  t('begins with its creation, not with the lapse of a claim before it', () => {
    deepEqual(birthOf(client, [lapsed, created]), created);
  });

  t('only the exact rule lets a late approval fail', () => {
    equal(letsLateFail({ approvalLate: 'fail' }), true);
    for (const rules of [{}, { approvalLate: 'publish' }, { approvalLate: true }]) equal(letsLateFail(rules), false);
  });

  t('records only the members that changed', () => {
    given([created])
      .when({ type: 'Update', changes: { ...clientFields, timezone: null, rules: { bannedWords: ['free'] } } })
      .then([{ type: 'ClientUpdated', data: { timezone: null, rules: { bannedWords: ['free'] } } }]);
    given([created])
      .when({ type: 'Update', changes: { ...clientFields } })
      .then([]);
    given([created]).when({ type: 'Update', changes: {} }).then([]);
  });

  t('only the exact rule of a live client lets a target with an unknown outcome be tried again', () => {
    const withRule = (unknownOutcome: unknown) =>
      state([{ type: 'ClientCreated', data: { ...clientFields, rules: { unknownOutcome } } }]);
    equal(retriesWhenAbsent(withRule('retry_when_absent')), true);
    for (const other of ['hold', 'RETRY_WHEN_ABSENT', true, null, undefined]) {
      equal(retriesWhenAbsent(withRule(other)), false);
    }
    equal(retriesWhenAbsent(state([created])), false);
    equal(retriesWhenAbsent(state([])), false);
    const rules = { unknownOutcome: 'retry_when_absent' };
    equal(retriesWhenAbsent(state([created, { type: 'ClientUpdated', data: { rules } }])), true);
    equal(retriesWhenAbsent(state([created, { type: 'ClientUpdated', data: { rules } }, archived])), false);
  });

  t('changes no more once archived, and is archived once', () => {
    given([created]).when({ type: 'Archive' }).then([archived]);
    given([created, archived])
      .when({ type: 'Update', changes: { name: 'New' } })
      .refused('client_archived');
    given([created, archived]).when({ type: 'Archive' }).then([]);
  });

  t('must exist before it changes', () => {
    given([]).when({ type: 'Update', changes: {} }).refused('not_found');
    given([]).when({ type: 'Archive' }).refused('not_found');
    given([]).when({ type: 'Erase' }).refused('not_found');
  });

  t('is erased once, live or archived', () => {
    given([created]).when({ type: 'Erase' }).then([erased]);
    given([created, archived]).when({ type: 'Erase' }).then([erased]);
  });

  t('appends a lapse at every command, because each one moves the revision that a pending write expects', () => {
    const lapse = { type: 'LapseNameClaim', name: 'Acme' } as const;
    given([])
      .when(lapse)
      .then([lapsed], { again: [lapsed] });
    given([created])
      .when(lapse)
      .then([lapsed], { again: [lapsed] });
  });

  t('may be created after its claim lapsed', () =>
    given([lapsed]).when({ type: 'Create', fields: clientFields }).then([created]),
  );

  t('holds a name while it is live, in any spelling', () => {
    equal(bearsName(state([created]), ' ＡＣＭＥ '), true);
    equal(bearsName(state([created]), 'Acme 2'), false);
    equal(bearsName(state([created, archived]), 'Acme'), false);
    equal(bearsName(state([]), 'Acme'), false);
    const renamed: ClientEvent = { type: 'ClientUpdated', data: { name: 'Bravo' } };
    equal(bearsName(state([created, renamed]), 'Acme'), false);
    equal(bearsName(state([created, renamed]), 'bravo'), true);
    equal(bearsName(state([created, lapsed]), 'Acme'), true);
  });

  t('folds every event, and ignores one that does not fit', () => {
    const updated: ClientEvent = { type: 'ClientUpdated', data: { approvalRequired: true } };
    deepEqual(state([created, updated, lapsed, archived, erased]), {
      status: 'archived',
      fields: { ...clientFields, approvalRequired: true },
      erased: true,
    });
    for (const event of [updated, archived, erased, lapsed]) deepEqual(state([event]), client.initial);
  });
});
