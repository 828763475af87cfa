import { deepEqual } from 'node:assert/strict';
import { type ObservedCall, targetcalls } from '#domain/targetcalls.ts';
import { maxKeptCalls } from '#schemas/targetcalls.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(targetcalls);

const call = (path: string): ObservedCall => ({
  ...{ targetId: 't', accountId: 'a', clientId: 'c', attempt: 1, method: 'POST', host: 'x.example', path, headers: {} },
  ...{ bodySha256: null, outcome: 'answered', status: 201, reason: null, answer: '{}', calls: 1 },
  ...{ startedAt: '2026-01-01T00:00:00.000Z', endedAt: '2026-01-01T00:00:01.000Z' },
});
const event = (path: string) => ({ type: 'TargetNetworkCallObserved', data: call(path) }) as const;

suite('targetcalls', (t) => {
  t('keeps calls in their order, also equal ones: each was made', () => {
    given([])
      .when({ type: 'Observe', calls: [call('/1'), call('/2')] })
      .then([event('/1'), event('/2')], { again: [event('/1'), event('/2')] });
  });

  t('keeps no more than its bound', () => {
    const full = Array.from({ length: maxKeptCalls }, (_, at) => event(`/${at}`));
    given(full.slice(1))
      .when({ type: 'Observe', calls: [call('/last'), call('/too-many')] })
      .then([event('/last')]);
    given(full)
      .when({ type: 'Observe', calls: [call('/too-many')] })
      .then([]);
    deepEqual(state(full), { kept: maxKeptCalls });
  });
});
