import { randomUUID } from 'node:crypto';
import { Temporal } from 'temporal-polyfill';
import { media } from '#domain/media.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { Platform } from '#schemas/common.ts';
import { contextOf, type Operator } from '#services/workflows/provision.ts';
import type { Answered, Caller } from '#test/support/http.ts';

/**
 * What a person can do to a post, each as a feature that can be paired with every other one: how it shapes the post at
 * its creation, what is done while the post waits, and what is done once its time has passed.
 */

type Json = Readonly<Record<string, unknown>>;

/** A post of one pair, in a workspace of its own. */
export interface Scene {
  readonly name: string;
  readonly by: Caller;
  readonly operator: Operator;
  /** Of the data: the sandbox twin. */
  readonly workspaceId: string;
  readonly clientId: string;
  readonly accounts: Readonly<Partial<Record<Platform, string>>>;
  readonly dueAt: number;
  /** An asset without a rendition for any network. */
  readonly rawAsset: () => Promise<string>;
  readonly body: Record<string, unknown>;
  postId: string;
  /** Each call and its answer. */
  readonly said: string[];
  readonly violations: string[];
}

export interface Feature {
  /** Shapes the workspace and the post before it is created. */
  readonly shape?: (scene: Scene) => Promise<void> | void;
  /** Gives a post that exists the same shape. Default: nothing. */
  readonly reshape?: (scene: Scene) => Promise<void>;
  /** Done while the post waits for its time. */
  readonly before?: (scene: Scene) => Promise<void>;
  /** Done right after its time. */
  readonly after?: (scene: Scene) => Promise<void>;
  /** Done two days after its time. */
  readonly daysLater?: (scene: Scene) => Promise<void>;
}

export const minuteMs = 60_000;
/** The least time between two posts of an account, where the cadence is set. */
export const cadenceMs = 15 * minuteMs;
export const recycleDays = 1;
const iso = (at: number): string => new Date(at).toISOString();

/** A refusal is an answer; a fault of ours is none. */
const ask = async (scene: Scene, what: string, asked: Promise<Answered>): Promise<Answered> => {
  const answer = await asked;
  if (what !== 'read' || answer.status !== 200)
    scene.said.push(`${what}: ${answer.status}${answer.body?.code === undefined ? '' : ` ${answer.body.code}`}`);
  if (answer.status >= 500) scene.violations.push(`${what} was answered with ${answer.status}: ${answer.text}`);
  return answer;
};

const give = ({ body }: Scene, more: Json): void => void Object.assign(body, more);

const revise = async (scene: Scene, body: Json): Promise<void> =>
  void (await ask(scene, 'revise', scene.by.post(`/posts/${scene.postId}/revise`, body)));

/** As a caller reads who is told that the read models are behind. */
const shown = async (scene: Scene): Promise<Json> => {
  let answer = await scene.by.get(`/posts/${scene.postId}`);
  for (let tries = 0; answer.status === 503 && tries < 20; tries += 1)
    answer = await scene.by.get(`/posts/${scene.postId}`);
  if (answer.status !== 200) scene.violations.push(`its post is answered with ${answer.status}: ${answer.text}`);
  return answer.data ?? {};
};
const targetsOf = (post: Json): readonly { readonly id: string; readonly status: string }[] =>
  (post.targets ?? []) as readonly { readonly id: string; readonly status: string }[];

const decide = async (scene: Scene, decision: 'approve' | 'reject' = 'approve'): Promise<void> => {
  const { approvalId } = await shown(scene);
  if (typeof approvalId !== 'string') return;
  await ask(scene, decision, scene.by.post(`/approvals/${approvalId}/${decision}`, { comment: 'So it is decided.' }));
};

const requireApproval = async (scene: Scene): Promise<void> =>
  void (await ask(scene, 'require approval', scene.by.patch(`/clients/${scene.clientId}`, { approvalRequired: true })));

/** As an operator sets it. */
const rule = async (
  { operator, workspaceId }: Scene,
  command: Parameters<typeof workspace.decide>[0],
): Promise<void> => {
  await execute(operator.store, workspace, workspaceId, command, contextOf(operator, workspaceId));
};

const cadence = (scene: Scene) =>
  rule(scene, { type: 'SetCadence', rule: { platform: null, minIntervalMinutes: cadenceMs / minuteMs, perDay: null } });
/** Room for the post and its copies, and for no more. */
const quota = (scene: Scene) => rule(scene, { type: 'SetPostingQuota', limit: 8 });

const segments = (scene: Scene) => ({ segments: [1, 2].map((n) => ({ content: `${scene.name}, part ${n}` })) });
const range = ({ dueAt }: Scene) => ({ type: 'range', from: iso(dueAt), to: iso(dueAt + 20 * minuteMs) });
/** The strongest slot within a day. */
const bestSlot = async (scene: Scene): Promise<Json> => {
  const { rows } = await ask(scene, 'best times', scene.by.get(`/best-times?clientId=${scene.clientId}&limit=100`));
  const hours = Array.from({ length: 24 }, (_, hour) => scene.dueAt + hour * 60 * minuteMs);
  for (const { weekday, hour, timezone } of rows ?? []) {
    const at = hours.find((one) => {
      const zoned = Temporal.Instant.fromEpochMilliseconds(one).toZonedDateTimeISO(String(timezone));
      return zoned.dayOfWeek === weekday && zoned.hour === hour;
    });
    if (at !== undefined) return { type: 'at', scheduledAt: iso(at) };
  }
  throw new Error('no slot of the best times lies within a day');
};
const comments = (scene: Scene) => [
  { platform: 'x', overrides: { firstComment: `A comment on ${scene.name}` } },
  { platform: 'facebook', overrides: { firstComment: `Another on ${scene.name}` } },
];

export const features = {
  approval: {
    shape: requireApproval,
    reshape: async (scene) => {
      await requireApproval(scene);
      await revise(scene, { content: `${scene.name}, to be approved` });
    },
    before: (scene) => decide(scene),
  },
  'late approval': {
    shape: requireApproval,
    reshape: async (scene) => {
      await requireApproval(scene);
      await revise(scene, { content: `${scene.name}, to be approved late` });
    },
    daysLater: (scene) => decide(scene),
  },
  // Once a part is out, the rest is revised, and the revision is rejected.
  rejection: {
    shape: (scene) => give(scene, { schedule: range(scene) }),
    reshape: (scene) => revise(scene, { schedule: range(scene) }),
    after: async (scene) => {
      await requireApproval(scene);
      await revise(scene, { content: `${scene.name}, to be rejected` });
      await decide(scene, 'reject');
    },
  },
  recycle: {
    before: async (scene) =>
      void (await ask(
        scene,
        'recycle',
        scene.by.request('PUT', `/posts/${scene.postId}/recycle`, { body: { everyDays: recycleDays, times: 2 } }),
      )),
  },
  'campaign shift': {
    before: async (scene) => {
      const made = await ask(scene, 'campaign', scene.by.post('/campaigns', { name: scene.name }));
      const path = `/campaigns/${made.data?.id}`;
      await ask(scene, 'assign', scene.by.post(`${path}/assign`, { postIds: [scene.postId] }));
      await ask(scene, 'shift', scene.by.post(`${path}/shift`, { minutes: 10 }));
    },
  },
  cadence: {
    shape: cadence,
    reshape: cadence,
    // Another post on the same accounts, at the same time: what its first post already takes, it must leave.
    before: async (scene) => {
      const body = { ...scene.body, content: `${scene.name}, beside it`, thread: null };
      await ask(scene, 'a post beside it', scene.by.post('/posts', body));
    },
  },
  quota: { shape: quota, reshape: quota },
  thread: {
    shape: (scene) => give(scene, { thread: segments(scene) }),
    reshape: (scene) => revise(scene, { thread: segments(scene) }),
  },
  'native hand-over': {
    shape: (scene) => give(scene, { scheduleMode: 'native' }),
    reshape: (scene) => revise(scene, { schedule: { type: 'at', scheduledAt: iso(scene.dueAt + 5 * minuteMs) } }),
  },
  range: {
    shape: (scene) => give(scene, { schedule: { ...range(scene), spreadMinutes: 3 } }),
    reshape: (scene) => revise(scene, { schedule: range(scene) }),
  },
  'best times': {
    shape: async (scene) => give(scene, { schedule: await bestSlot(scene) }),
    reshape: async (scene) => revise(scene, { schedule: await bestSlot(scene) }),
  },
  'first comment': {
    shape: (scene) => give(scene, { variants: comments(scene) }),
    reshape: (scene) => revise(scene, { variants: comments(scene) }),
  },
  'media not ready': {
    shape: async (scene) => give(scene, { mediaIds: [await scene.rawAsset()] }),
    reshape: async (scene) => revise(scene, { mediaIds: [await scene.rawAsset()] }),
    after: async (scene) => {
      const { operator, workspaceId } = scene;
      const needs = (['x', 'facebook'] as const).map(
        (platform) => ({ platform, use: 'feed', outcome: 'fits' }) as const,
      );
      const id = await scene.rawAsset();
      await execute(
        operator.store,
        media,
        id,
        { type: 'Plan', initial: false, needs },
        contextOf(operator, workspaceId),
      );
      scene.said.push('its renditions are made');
    },
  },
  revise: { before: (scene) => revise(scene, { content: `${scene.name}, revised` }) },
  cancel: {
    before: async (scene) => {
      const [first] = targetsOf(await shown(scene));
      if (first !== undefined) await ask(scene, 'cancel', scene.by.post(`/post-targets/${first.id}/cancel`));
    },
    after: async (scene) => void (await ask(scene, 'delete', scene.by.delete(`/posts/${scene.postId}`))),
  },
  bulk: {
    before: async (scene) => {
      const targetIds = targetsOf(await shown(scene)).map(({ id }) => id);
      if (targetIds.length === 0) return;
      const body = { action: 'reschedule', targetIds, shiftMinutes: 7 };
      await ask(scene, 'move many', scene.by.post('/post-targets/bulk', body));
    },
  },
  archive: {
    before: async (scene) => void (await ask(scene, 'archive', scene.by.delete(`/clients/${scene.clientId}`))),
  },
  disconnect: {
    before: async (scene) =>
      void (await ask(
        scene,
        'disconnect',
        scene.by.post(`/accounts/${scene.accounts.facebook}/disconnect`, undefined, { key: randomUUID() }),
      )),
  },
  retry: {
    shape: (scene) => give(scene, { content: `${scene.body.content} [[sandbox:reject once]]` }),
    after: async (scene) => {
      for (const { id, status } of targetsOf(await shown(scene))) {
        if (status === 'failed') await ask(scene, 'retry', scene.by.post(`/post-targets/${id}/retry`));
      }
    },
  },
} satisfies Readonly<Record<string, Feature>>;

export type FeatureName = keyof typeof features;
export const featureNames = Object.keys(features) as readonly FeatureName[];

/** Two features in the order in which they come to a post. */
export interface Pair {
  readonly first: FeatureName;
  readonly second: FeatureName;
}

/** Every pair in both orders. */
export const pairs: readonly Pair[] = featureNames.flatMap((first) =>
  featureNames.flatMap((second) => (first === second ? [] : [{ first, second }])),
);

/** Creates the post of a pair, and does what is done while it waits. */
export const begin = async (scene: Scene, { first, second }: Pair): Promise<void> => {
  const [one, other]: readonly Feature[] = [features[first], features[second]] as const;
  await one?.shape?.(scene);
  // After something was done to the post, the other feature can only give another shape to it.
  const reshapes = one?.before !== undefined && other?.reshape !== undefined;
  if (!reshapes || second === 'native hand-over') await other?.shape?.(scene);
  const made = await ask(scene, 'create', scene.by.post('/posts', scene.body));
  if (made.status !== 200) return;
  scene.postId = made.data.id;
  await one?.before?.(scene);
  if (reshapes) await other?.reshape?.(scene);
  await other?.before?.(scene);
};

/** Does what is done right after the time of the post, or days later. */
export const goOn = async (scene: Scene, { first, second }: Pair, when: 'after' | 'daysLater'): Promise<void> => {
  if (scene.postId === '') return;
  for (const name of [first, second]) {
    const feature: Feature = features[name];
    await feature[when]?.(scene);
  }
};
