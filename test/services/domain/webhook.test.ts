import { deepEqual, equal } from 'node:assert/strict';
import { type LiveWebhook, liveSecrets, overlapMs, type WebhookCommand, webhook } from '#domain/webhook.ts';
import type { WebhookEvent } from '#schemas/webhook.ts';
import { deciding, type Given } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(webhook);

const fields = { url: 'https://hooks.example/in', events: ['post.*'], description: null, clientIds: null };
const registered: WebhookEvent = { type: 'WebhookRegistered', data: { ...fields, keyVersion: 'v1' } };
const updated = (data: Extract<WebhookEvent, { type: 'WebhookUpdated' }>['data']): WebhookEvent => ({
  type: 'WebhookUpdated',
  data,
});
const off = (by: 'user' | 'service', reason: 'requested' | 'failing' | 'gone'): WebhookEvent => ({
  type: 'WebhookDisabled',
  data: { by, reason },
});
const on: WebhookEvent = { type: 'WebhookEnabled', data: {} };
const deleted: WebhookEvent = { type: 'WebhookDeleted', data: {} };
/** Hours after the registration. */
const at = (hours: number): string => new Date(Date.UTC(2026, 0, 1) + hours * 3_600_000).toISOString();
const rotated = (generation: number, hours: number): Given<WebhookEvent> => ({
  type: 'WebhookSecretRotated',
  data: { generation, keyVersion: 'v1', previousExpiresAt: at(hours + 24) },
  at: at(hours),
});
const rotate = (hours: number, commandId = 'again') =>
  ({ type: 'RotateSecret', commandId, now: at(hours), keyVersion: 'v1' }) as const;
const live = (events: readonly Given<WebhookEvent>[]): LiveWebhook => {
  const found = state(events);
  if (found.status === 'none') throw new Error('it was never registered');
  return found;
};

suite('webhook', (t) => {
  t('is registered once, each type named once', () => {
    given([])
      .when({ type: 'Register', ...fields, events: ['post.*', '*', 'post.*'], keyVersion: 'v2' })
      .then([{ type: 'WebhookRegistered', data: { ...fields, events: ['post.*', '*'], keyVersion: 'v2' } }]);
    given([registered])
      .when({ type: 'Register', ...fields, keyVersion: 'v1' })
      .then([]);
  });

  t('keeps what changes and nothing else, each type named once', () => {
    given([registered])
      .when({ type: 'Update', changes: { ...fields, description: 'ours' } })
      .then([updated({ description: 'ours' })]);
    given([registered])
      .when({ type: 'Update', changes: { events: ['post.*', 'post.*'] } })
      .then([]);
    given([registered])
      .when({ type: 'Update', changes: { events: ['*', 'post.*', '*'] } })
      .then([updated({ events: ['*', 'post.*'] })]);
    given([registered]).when({ type: 'Update', changes: {} }).then([]);
    equal(live([registered, updated({ url: 'https://b.example/' })]).url, 'https://b.example/');
  });

  t('is limited to each of its clients once; null lifts the limit', () => {
    given([])
      .when({ type: 'Register', ...fields, clientIds: ['a', 'b', 'a'], keyVersion: 'v1' })
      .then([{ type: 'WebhookRegistered', data: { ...fields, clientIds: ['a', 'b'], keyVersion: 'v1' } }]);
    given([registered])
      .when({ type: 'Update', changes: { clientIds: ['a', 'a'] } })
      .then([updated({ clientIds: ['a'] })]);
    given([registered, updated({ clientIds: ['a'] })])
      .when({ type: 'Update', changes: { clientIds: ['a'], description: null } })
      .then([]);
    given([registered, updated({ clientIds: ['a'] })])
      .when({ type: 'Update', changes: { clientIds: null } })
      .then([updated({ clientIds: null })]);
    deepEqual(live([registered, updated({ clientIds: ['a'] })]).clientIds, ['a']);
  });

  t('is turned off and on by a person, together with other changes', () => {
    given([registered])
      .when({ type: 'Update', changes: { active: false } })
      .then([off('user', 'requested')]);
    given([registered, off('service', 'gone')])
      .when({ type: 'Update', changes: { url: 'https://b.example/', active: true } })
      .then([updated({ url: 'https://b.example/' }), on]);
    given([registered, off('service', 'failing')])
      .when({ type: 'Update', changes: { active: false } })
      .then([]);
    const { active, disabled } = live([registered, off('service', 'gone')]);
    deepEqual([active, disabled], [false, { by: 'service', reason: 'gone' }]);
    deepEqual(live([registered, off('service', 'gone'), on]).disabled, null);
  });

  t('the sender turns it off for failures, never against a newer decision of a person', () => {
    const disable = (seenRevision: number): WebhookCommand => ({ type: 'Disable', reason: 'failing', seenRevision });
    given([registered])
      .when(disable(0))
      .then([off('service', 'failing')]);
    given([registered, updated({ description: 'x' })])
      .when(disable(0))
      .then([off('service', 'failing')]);
    given([registered, updated({ url: 'https://b.example/' })])
      .when(disable(0))
      .then([]);
    given([registered, off('service', 'failing'), on])
      .when(disable(0))
      .then([]);
    given([registered, off('service', 'failing'), on])
      .when(disable(2))
      .then([off('service', 'failing')]);
    given([registered, off('user', 'requested')])
      .when(disable(0))
      .then([]);
    given([registered, deleted]).when(disable(0)).then([]);
    given([registered, deleted, on]).when(disable(2)).then([]);
    given([]).when(disable(0)).then([]);
  });

  t('a rotation leaves the former secret a day; at most five sign at once, by the instant', () => {
    given([registered])
      .when(rotate(1, 'first'))
      .then([
        {
          type: 'WebhookSecretRotated',
          data: { generation: 2, keyVersion: 'v1', previousExpiresAt: at(25) },
        },
      ]);
    equal(overlapMs, 24 * 3_600_000);
    const five = [registered, ...[2, 3, 4, 5].map((generation) => rotated(generation, generation))];
    given(five).when(rotate(6)).refused('too_many_secrets');
    // The first expires a day after the first rotation, at that very instant.
    given(five).when(rotate(25.999)).refused('too_many_secrets');
    given(five)
      .when(rotate(26))
      .then([{ type: 'WebhookSecretRotated', data: { generation: 6, keyVersion: 'v1', previousExpiresAt: at(50) } }]);
    const { secrets } = live(five);
    deepEqual(
      secrets.map(({ generation, expiresAt }) => [generation, expiresAt]),
      [
        [5, null],
        [4, at(29)],
        [3, at(28)],
        [2, at(27)],
        [1, at(26)],
      ],
    );
    deepEqual(
      liveSecrets(secrets, at(27)).map(({ generation }) => generation),
      [5, 4, 3],
    );
    equal(live([...five, rotated(6, 100)]).secrets.length, 2, 'those that had expired are forgotten');
  });

  t('a request under one command id happens once', () => {
    given([registered])
      .when({ type: 'RequestTest', commandId: 'c', eventType: 'webhook.test' })
      .then([{ type: 'WebhookTestRequested', data: { eventType: 'webhook.test' } }]);
    given([registered])
      .when({ type: 'RequestResend', commandId: 'c', deliveryId: 'd', eventTime: at(0) })
      .then([{ type: 'WebhookResendRequested', data: { deliveryId: 'd', eventTime: at(0) } }]);
    const asked = { replayId: 'r', from: at(0), to: at(1), types: ['post.*'] };
    given([registered])
      .when({ type: 'RequestReplay', commandId: 'c', ...asked })
      .then([{ type: 'WebhookReplayRequested', data: asked }]);
    given([registered])
      .when({ type: 'RequestReplay', commandId: 'c', ...asked, types: null })
      .then([{ type: 'WebhookReplayRequested', data: { ...asked, types: null } }]);
    given([registered, off('user', 'requested')])
      .when({ type: 'RequestTest', commandId: 'c', eventType: 'post.created' })
      .then([{ type: 'WebhookTestRequested', data: { eventType: 'post.created' } }]);
  });

  t('the newest thousand requests are remembered', () => {
    deepEqual(live([registered]).applied, []);
    const tests = Array.from(
      { length: 1_001 },
      (_, n): Given<WebhookEvent> => ({
        type: 'WebhookTestRequested',
        data: { eventType: 'webhook.test' },
        commandId: `c${n}`,
      }),
    );
    const { applied } = live([registered, ...tests]);
    deepEqual([applied.length, applied[0], applied.at(-1)], [1_000, 'c1', 'c1000']);
  });

  t('a replay is canceled once; one that was never requested is unknown', () => {
    const asked: WebhookEvent = {
      type: 'WebhookReplayRequested',
      data: { replayId: 'r', from: at(0), to: at(1), types: null },
    };
    given([registered, asked])
      .when({ type: 'CancelReplay', replayId: 'r' })
      .then([{ type: 'WebhookReplayCanceled', data: { replayId: 'r' } }]);
    given([registered]).when({ type: 'CancelReplay', replayId: 'r' }).refused('not_found');
    equal(live([registered, asked]).replays.r?.canceled, false);
    equal(
      live([registered, asked, { type: 'WebhookReplayCanceled', data: { replayId: 'r' } }]).replays.r?.canceled,
      true,
    );
    const canceled: WebhookEvent = { type: 'WebhookReplayCanceled', data: { replayId: 'r' } };
    deepEqual(state([registered, canceled]), state([registered]));
  });

  t('deleted once and for all: it is unknown to every other command', () => {
    given([registered]).when({ type: 'Delete' }).then([deleted]);
    given([]).when({ type: 'Delete' }).refused('not_found');
    const commands: readonly WebhookCommand[] = [
      { type: 'Update', changes: { active: true } },
      rotate(1),
      { type: 'RequestTest', commandId: 'c', eventType: 'webhook.test' },
      { type: 'RequestResend', commandId: 'c', deliveryId: 'd', eventTime: at(0) },
      { type: 'RequestReplay', commandId: 'c', replayId: 'r', from: at(0), to: at(1), types: null },
      { type: 'CancelReplay', replayId: 'r' },
    ];
    for (const command of commands) {
      given([registered, deleted]).when(command).refused('not_found');
      given([]).when(command).refused('not_found');
    }
    const { status, active } = live([registered, deleted]);
    deepEqual([status, active], ['deleted', false]);
  });

  t('events before the creation are ignored', () => {
    for (const event of [updated({ description: 'x' }), rotated(2, 1), off('user', 'requested'), on, deleted]) {
      deepEqual(state([event]), webhook.initial);
    }
  });
});
