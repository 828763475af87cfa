import { deepEqual } from 'node:assert/strict';
import { request } from '#domain/request.ts';
import type { RequestEvent } from '#schemas/request.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(request);

const asked = { operation: 'retryPostTarget', fingerprint: 'f1', decided: { at: 1 } };
const accepted: RequestEvent = { type: 'RequestAccepted', data: asked };
const done: RequestEvent = { type: 'RequestCompleted', data: { outcome: 'done', result: { ok: 1 } } };
const refused: RequestEvent = { type: 'RequestCompleted', data: { outcome: 'refused' } };
// The first accepted event of a stream is `event-0`: that is the id its effects carry.
const commandId = 'event-0';

suite('request', (t) => {
  t('accepts the first request, and the same request again for ever', () => {
    given([])
      .when({ type: 'Accept', ...asked })
      .then([accepted]);
    given([accepted])
      .when({ type: 'Accept', ...asked, decided: { at: 2 } })
      .then([]);
    given([accepted, done])
      .when({ type: 'Accept', ...asked })
      .then([]);
  });

  t('refuses another request under the same key, running or done', () => {
    const other = { type: 'Accept', ...asked, fingerprint: 'f2' } as const;
    given([accepted]).when(other).refused('idempotency_key_reused');
    given([accepted, done]).when(other).refused('idempotency_key_reused');
  });

  t('is completed once: the first result stays', () => {
    given([accepted])
      .when({ type: 'Complete', commandId, result: { ok: 1 } })
      .then([done]);
    given([accepted, done])
      .when({ type: 'Complete', commandId, result: { ok: 2 } })
      .then([]);
    given([]).when({ type: 'Complete', commandId, result: null }).then([]);
  });

  t('is free again after a refusal, for any request', () => {
    given([accepted]).when({ type: 'Refuse', commandId }).then([refused]);
    given([accepted, refused])
      .when({ type: 'Accept', ...asked, fingerprint: 'f2' })
      .then([{ type: 'RequestAccepted', data: { ...asked, fingerprint: 'f2' } }]);
    given([accepted, done]).when({ type: 'Refuse', commandId }).then([]);
  });

  t('ignores a late result of an earlier acceptance', () => {
    const again = [accepted, refused, accepted];
    given(again).when({ type: 'Complete', commandId, result: 'late' }).then([]);
    given(again).when({ type: 'Refuse', commandId }).then([]);
    given(again)
      .when({ type: 'Complete', commandId: 'event-2', result: { ok: 1 } })
      .then([done]);
  });

  t('folds to the accepted values and their result', () => {
    deepEqual(state([{ ...accepted, at: '2026-03-01T00:00:00.000Z' }]), {
      status: 'accepted',
      commandId,
      ...asked,
      acceptedAt: '2026-03-01T00:00:00.000Z',
    });
    deepEqual(state([accepted, done]), { status: 'done', commandId, ...asked, result: { ok: 1 } });
    deepEqual(state([accepted, done, refused]), state([accepted, done]));
    deepEqual(state([done]), request.initial);
  });
});
