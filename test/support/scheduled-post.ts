import { ids, instant, on } from '#test/support/projecting.ts';
import { planned, postBody } from '#test/support/samples.ts';

/** A post with two targets, and the events that make it. */
export const scheduled = () => {
  const { id, clientId, a, b, accountA, accountB } = ids('id', 'clientId', 'a', 'b', 'accountA', 'accountB');
  const targets = [
    planned({ targetId: a, accountId: accountA, clientId, dueAt: '2026-03-02T09:00:00.000Z' }),
    planned({ targetId: b, accountId: accountB, clientId, platform: 'threads' }),
  ];
  const post = on('post', id);
  const createdBy = { type: 'apikey', id: 'k' };
  return {
    ...{ id, clientId, a, b, accountA, accountB, targets, post },
    targetA: on('target', a),
    targetB: on('target', b),
    plan: post('PostScheduled', { clientId, createdBy, body: postBody(), plan: { number: 1, targets } }),
    fanOut: targets.map((one) =>
      on('target', one.targetId)('TargetScheduled', { ...one, postId: id, postRevision: 0 }),
    ),
  };
};
export const claim = { attempt: 1, takeover: 0 };
export const out = { ...claim, externalId: 'x-1', permalink: 'https://x.example/1', publishedAt: instant(90) };
