import { deepEqual, equal } from 'node:assert/strict';
import { accountmetrics, targetmetrics } from '#domain/insights.ts';
import type { AccountMetricsEvent, TargetMetricsEvent } from '#schemas/insights.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const at = (hours: number) => new Date(Date.UTC(2026, 0, 1, hours)).toISOString();
const about = (observedAt: string) => ({
  accountId: 'a1',
  clientId: 'c1',
  platform: 'facebook' as const,
  observedAt,
  day: observedAt.slice(0, 10),
  source: 'sandbox/1',
  raw: {},
});

type TargetObservation = Extract<TargetMetricsEvent, { type: 'TargetMetricsObserved' }>['data'];
const ofPost = (observedAt: string, likes: number | null, removedAt: string | null = null): TargetObservation => ({
  ...about(observedAt),
  targetId: 't1',
  postId: 'p1',
  externalId: 'e1',
  publishedAt: at(0),
  figures: { likes },
  platformRemovedAt: removedAt,
});
const reported = (observation: TargetObservation): TargetMetricsEvent => ({
  type: 'TargetMetricsObserved',
  data: observation,
});
const observe = <T>(observation: T) => ({ type: 'Observe', observation }) as const;

suite('target metrics', (t) => {
  const { given, state } = deciding(targetmetrics);

  t('keep the figures that a network reports, also when they are lower or absent', () => {
    given([])
      .when(observe(ofPost(at(1), 3)))
      .then([reported(ofPost(at(1), 3))]);
    given([reported(ofPost(at(1), 3))])
      .when(observe(ofPost(at(2), 2)))
      .then([reported(ofPost(at(2), 2))]);
    given([reported(ofPost(at(1), 3))])
      .when(observe(ofPost(at(2), null)))
      .then([reported(ofPost(at(2), null))]);
  });

  t('keep the same figures of a later observation, which shows that they still hold', () =>
    given([reported(ofPost(at(1), 3))])
      .when(observe(ofPost(at(2), 3)))
      .then([reported(ofPost(at(2), 3))]),
  );

  t('hold an answer that did not change once, and its figures each time', () => {
    const of = (hour: number, rawHash: string | undefined, raw: unknown, removedAt: string | null = null) => ({
      ...{ ...ofPost(at(hour), 3, removedAt), raw },
      ...(rawHash === undefined ? {} : { rawHash }),
    });
    const first = reported(of(1, 'a', { likes: 3 }));
    given([first])
      .when(observe(of(2, 'a', { likes: 3 })))
      .then([reported(of(2, 'a', null))]);
    given([first, reported(of(2, 'a', null))])
      .when(observe(of(3, 'a', { likes: 3 })))
      .then([reported(of(3, 'a', null))]);
    given([first, reported(of(2, 'a', null))])
      .when(observe(of(3, 'b', { likes: 4 })))
      .then([reported(of(3, 'b', { likes: 4 }))]);
    given([reported(of(1, undefined, { likes: 3 }))])
      .when(observe(of(2, undefined, { likes: 3 })))
      .then([reported(of(2, undefined, { likes: 3 }))]);
    const gone = of(3, undefined, { likes: 3 }, at(3));
    given([first, reported(of(2, 'a', null))])
      .when(observe(gone))
      .then([reported(gone)]);
    deepEqual(state([first, reported(of(2, 'a', null))]).raw, { likes: 3 });
  });

  t('leave out an answer that is not newer than the last one', () => {
    for (const observedAt of [at(1), at(2)]) {
      given([reported(ofPost(at(2), 3))])
        .when(observe(ofPost(observedAt, 9)))
        .then([]);
    }
  });

  t('are final once the post was removed from its network', () => {
    const gone = ofPost(at(3), 3, at(3));
    given([reported(ofPost(at(1), 3))])
      .when(observe(gone))
      .then([reported(gone)]);
    given([reported(gone)])
      .when(observe(ofPost(at(4), 9)))
      .then([]);
    given([reported(gone)])
      .when(observe(ofPost(at(4), 3, at(4))))
      .then([]);
  });

  t('fold to the newest observation', () => {
    deepEqual(state([]), { last: null, figures: {}, raw: null });
    deepEqual(state([reported(ofPost(at(1), 3)), reported(ofPost(at(2), 4))]), {
      last: ofPost(at(2), 4),
      figures: { likes: 4 },
      raw: {},
    });
  });

  t('keep each figure as it was fetched last: null is fetched, absent is not', () => {
    const of = (hour: number, figures: TargetObservation['figures']) => reported({ ...ofPost(at(hour), 0), figures });
    const all = [of(1, { likes: 1, clicks: 5, saves: 2 }), of(2, { likes: 2, saves: null }), of(3, { likes: 3 })];
    deepEqual(state(all).figures, { likes: 3, clicks: 5, saves: null });
  });
});

type AccountObservation = Extract<AccountMetricsEvent, { type: 'AccountMetricsObserved' }>['data'];
const ofAccount = (observedAt: string, followerCount: number): AccountObservation => ({
  ...about(observedAt),
  figures: { followerCount },
  figuresDay: null,
  demographics: null,
});
const received = (observation: AccountObservation): AccountMetricsEvent => ({
  type: 'AccountMetricsObserved',
  data: observation,
});

suite('account metrics', (t) => {
  const { given, state } = deciding(accountmetrics);

  t('hold an answer that did not change once, and its figures each time', () => {
    const of = (hour: number, rawHash: string | undefined, raw: unknown) => ({
      ...{ ...ofAccount(at(hour), 100), raw },
      ...(rawHash === undefined ? {} : { rawHash }),
    });
    const answer = { followers: 100 };
    const first = received(of(1, 'a', answer));
    given([])
      .when(observe(of(1, 'a', answer)))
      .then([first]);
    given([first])
      .when(observe(of(2, 'a', answer)))
      .then([received(of(2, 'a', null))]);
    given([first, received(of(2, 'a', null))])
      .when(observe(of(3, 'a', answer)))
      .then([received(of(3, 'a', null))]);
    given([first, received(of(2, 'a', null))])
      .when(observe(of(3, 'b', { followers: 101 })))
      .then([received(of(3, 'b', { followers: 101 }))]);
    given([received(of(1, undefined, answer))])
      .when(observe(of(2, undefined, answer)))
      .then([received(of(2, undefined, answer))]);
    // An earlier day in the list changed: it has an answer of its own.
    const day = { ...of(2, undefined, { day: 1 }), figuresDay: '2025-12-31', figures: { profileViews: 5 } };
    given([first])
      .when({ ...observe(of(2, 'a', answer)), earlier: [day] })
      .then([received(day), received(of(2, 'a', null))]);
  });

  t('keep the figures that a network reports, fewer followers too', () => {
    given([])
      .when(observe(ofAccount(at(1), 100)))
      .then([received(ofAccount(at(1), 100))]);
    given([received(ofAccount(at(1), 100))])
      .when(observe(ofAccount(at(2), 90)))
      .then([received(ofAccount(at(2), 90))]);
  });

  t('leave out an answer that is not newer than the last one', () => {
    for (const observedAt of [at(1), at(2)]) {
      given([received(ofAccount(at(2), 100))])
        .when(observe(ofAccount(observedAt, 9)))
        .then([]);
    }
  });

  t('fold to the newest observation', () => {
    deepEqual(state([received(ofAccount(at(1), 1)), received(ofAccount(at(2), 2))]), {
      last: ofAccount(at(2), 2),
      days: {},
    });
  });

  const ofDay = (hour: number, figuresDay: string, figures: AccountObservation['figures']): AccountObservation => ({
    ...ofAccount(at(hour), 5),
    figures: { followerCount: 5, ...figures },
    figuresDay,
  });
  const look = (observation: AccountObservation, ...earlier: readonly AccountObservation[]) =>
    ({ type: 'Observe', observation, earlier }) as const;

  t('record earlier days that are new or revised, oldest first, and the newest day last', () => {
    const known = ofDay(1, '2026-01-03', { videoViews: 7, profileViews: 1 });
    const [same, old, newest] = [
      ofDay(2, '2026-01-03', { videoViews: 7 }),
      ofDay(2, '2026-01-02', { videoViews: 4 }),
      ofDay(2, '2026-01-05', { videoViews: 9 }),
    ];
    given([received(known)])
      .when(look(newest, ofDay(2, '2026-01-04', { videoViews: 8 }), same, old))
      .then([received(old), received(ofDay(2, '2026-01-04', { videoViews: 8 })), received(newest)]);
    const days = (...names: readonly string[]) => names.map((day) => ofDay(2, `2026-01-${day}`, { videoViews: 4 }));
    given([])
      .when(look(newest, ...days('03', '01', '04', '02')))
      .then([...days('01', '02', '03', '04'), newest].map(received));
    // What the later look does not tell of the day is kept beside what it revises.
    given([received(known)])
      .when(look(newest, ofDay(2, '2026-01-03', { videoViews: 6 })))
      .then([received(ofDay(2, '2026-01-03', { videoViews: 6, profileViews: 1 })), received(newest)]);
    given([received(newest)])
      .when(look(ofDay(2, '2026-01-06', {}), ofDay(2, '2026-01-04', { videoViews: 8 })))
      .then([]);
  });

  t('keep the figures of the newest day that its second observation lacks', () => {
    given([received(ofDay(1, '2026-01-05', { videoViews: 9, profileViews: 3 }))])
      .when(look(ofDay(2, '2026-01-05', { videoViews: 10 })))
      .then([received(ofDay(2, '2026-01-05', { videoViews: 10, profileViews: 3 }))]);
  });

  t('record a day once that a list names twice, with the figures of the first entry', () => {
    const twice = [6, 7].map((videoViews) => ofDay(2, '2026-01-03', { videoViews }));
    const newest = ofDay(2, '2026-01-05', { videoViews: 9 });
    given([])
      .when(look(newest, ...twice))
      .then([received(ofDay(2, '2026-01-03', { videoViews: 6 })), received(newest)]);
    given([received(ofDay(1, '2026-01-03', { videoViews: 6 }))])
      .when(look(newest, ...twice))
      .then([received(newest)]);
  });

  t('remember the newest days, and no more of them than networks revise', () => {
    const all = Array.from({ length: 30 }, (_, day) => ofDay(1, `2026-01-${String(30 - day).padStart(2, '0')}`, {}));
    for (const reported of [all, all.toReversed()]) {
      const { days } = state(reported.map(received));
      equal(Object.keys(days).length, 14);
      equal(Object.keys(days).sort()[0], '2026-01-17');
    }
  });
});
