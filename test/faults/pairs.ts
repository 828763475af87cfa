import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Temporal } from 'temporal-polyfill';
import { media } from '#domain/media.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { Platform } from '#schemas/common.ts';
import { contextOf, type Operator } from '#services/workflows/provision.ts';
import type { Answered, Ask, Caller } from '#test/support/http.ts';
import { patience } from '#test/support/patience.ts';

/**
 * What a person can do to a post, each as a feature that can be paired with every other one: how it shapes the post at
 * its creation, what is done while the post waits, and what is done once its time has passed.
 */

type Json = Readonly<Record<string, unknown>>;

/** A post of one pair, in a workspace of its own. */
export interface Scene {
  readonly name: string;
  by: Caller;
  operator: Operator;
  /** Of the data: the sandbox twin. */
  readonly workspaceId: string;
  readonly clientId: string;
  readonly accounts: Readonly<Partial<Record<Platform, string>>>;
  readonly dueAt: number;
  /** An asset without a rendition for any network. */
  rawAsset: () => Promise<string>;
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

/** As a caller who repeats a call, under its key, while the answer is that the service is unavailable. */
const insisted = async (scene: Scene, method: string, path: string, ask: Ask = {}): Promise<Answered> => {
  const key = method === 'POST' ? randomUUID() : null;
  for (const until = performance.now() + 30_000 * patience; ; await delay(100)) {
    const answer = await scene.by.request(method, path, { key, ...ask });
    if (answer.status !== 503 || performance.now() > until) return answer;
  }
};

/** A refusal is an answer; a fault of ours is none. */
const ask = async (scene: Scene, what: string, method: string, path: string, body?: unknown): Promise<Answered> => {
  const answer = await insisted(scene, method, path, { body });
  scene.said.push(`${what}: ${answer.status}${answer.body?.code === undefined ? '' : ` ${answer.body.code}`}`);
  if (answer.status >= 500) scene.violations.push(`${what} was answered with ${answer.status}: ${answer.text}`);
  return answer;
};

const give = ({ body }: Scene, more: Json): void => void Object.assign(body, more);

const revise = async (scene: Scene, body: Json): Promise<void> =>
  void (await ask(scene, 'revise', 'POST', `/posts/${scene.postId}/revise`, body));

const read = async (scene: Scene, path: string): Promise<Answered> => {
  const answer = await insisted(scene, 'GET', path);
  if (answer.status !== 200) scene.violations.push(`${path} is answered with ${answer.status}: ${answer.text}`);
  return answer;
};

const shown = async (scene: Scene): Promise<Json> => (await read(scene, `/posts/${scene.postId}`)).data ?? {};
const targetsOf = (post: Json): readonly { readonly id: string; readonly status: string }[] =>
  (post.targets ?? []) as readonly { readonly id: string; readonly status: string }[];

const decide = async (scene: Scene, decision: 'approve' | 'reject' = 'approve'): Promise<void> => {
  const { approvalId } = await shown(scene);
  if (typeof approvalId !== 'string') return;
  await ask(scene, decision, 'POST', `/approvals/${approvalId}/${decision}`, { comment: 'So it is decided.' });
};

const requireApproval = async (scene: Scene): Promise<void> =>
  void (await ask(scene, 'require approval', 'PATCH', `/clients/${scene.clientId}`, { approvalRequired: true }));

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
  const { rows } = await read(scene, `/best-times?clientId=${scene.clientId}&limit=100`);
  const hours = Array.from({ length: 24 }, (_, hour) => scene.dueAt + hour * 60 * minuteMs);
  for (const { weekday, hour, timezone } of rows ?? []) {
    const at = hours.find((one) => {
      const zoned = Temporal.Instant.fromEpochMilliseconds(one).toZonedDateTimeISO(String(timezone));
      return zoned.dayOfWeek === weekday && zoned.hour === hour;
    });
    if (at !== undefined) return { type: 'at', scheduledAt: iso(at) };
  }
  throw new Error(`no slot of the best times lies within a day: ${scene.violations}`);
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
      void (await ask(scene, 'recycle', 'PUT', `/posts/${scene.postId}/recycle`, { everyDays: recycleDays, times: 2 })),
  },
  'campaign shift': {
    before: async (scene) => {
      const made = await ask(scene, 'campaign', 'POST', '/campaigns', { name: scene.name });
      const path = `/campaigns/${made.data?.id}`;
      await ask(scene, 'assign', 'POST', `${path}/assign`, { postIds: [scene.postId] });
      await ask(scene, 'shift', 'POST', `${path}/shift`, { minutes: 10 });
    },
  },
  cadence: {
    shape: cadence,
    reshape: cadence,
    // Another post on the same accounts, at the same time: what its first post already takes, it must leave.
    before: async (scene) => {
      const body = { ...scene.body, content: `${scene.name}, beside it`, thread: null };
      await ask(scene, 'a post beside it', 'POST', '/posts', body);
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
  // Facebook looks at the post before it shows it.
  processing: {
    shape: (scene) => give(scene, { content: `${scene.body.content} [[sandbox:processing 400ms]]` }),
    reshape: (scene) => revise(scene, { content: `${scene.name} [[sandbox:processing 400ms]]` }),
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
      if (first !== undefined) await ask(scene, 'cancel', 'POST', `/post-targets/${first.id}/cancel`);
    },
    after: async (scene) => void (await ask(scene, 'delete', 'DELETE', `/posts/${scene.postId}`)),
  },
  bulk: {
    before: async (scene) => {
      const targetIds = targetsOf(await shown(scene)).map(({ id }) => id);
      if (targetIds.length === 0) return;
      const body = { action: 'reschedule', targetIds, shiftMinutes: 7 };
      await ask(scene, 'move many', 'POST', '/post-targets/bulk', body);
    },
  },
  archive: {
    before: async (scene) => void (await ask(scene, 'archive', 'DELETE', `/clients/${scene.clientId}`)),
  },
  disconnect: {
    before: async (scene) =>
      void (await ask(scene, 'disconnect', 'POST', `/accounts/${scene.accounts.facebook}/disconnect`)),
  },
  retry: {
    shape: (scene) => give(scene, { content: `${scene.body.content} [[sandbox:reject once]]` }),
    after: async (scene) => {
      for (const { id, status } of targetsOf(await shown(scene))) {
        if (status === 'failed') await ask(scene, 'retry', 'POST', `/post-targets/${id}/retry`);
      }
    },
  },
} satisfies Readonly<Record<string, Feature>>;

export type FeatureName = keyof typeof features;
export const featureNames = Object.keys(features) as readonly FeatureName[];

/** Of a whole installation: all its posts have it at once. */
const restore = 'restore';

/** Two features in the order in which they come to a post. */
export interface Pair {
  readonly first: FeatureName | typeof restore;
  readonly second: FeatureName | typeof restore;
}

/** Every pair in both orders, but those of a restore. */
export const pairs: readonly Pair[] = featureNames.flatMap((first) =>
  featureNames.flatMap((second) => (first === second ? [] : [{ first, second }])),
);

export const restorePairs: readonly Pair[] = featureNames.flatMap((name) => [
  { first: name, second: restore },
  { first: restore, second: name },
]);

const featureOf = (name: Pair['first']): Feature => (name === restore ? {} : features[name]);

const create = async (scene: Scene): Promise<boolean> => {
  const made = await ask(scene, 'create', 'POST', '/posts', scene.body);
  if (made.status === 200) scene.postId = made.data.id;
  return made.status === 200;
};

/**
 * Creates the post of a pair, and does what is done while it waits: of one where the restore comes first only what shapes
 * the post, or nothing where the feature can give the shape later.
 */
export const begin = async (scene: Scene, { first, second }: Pair): Promise<void> => {
  const [one, other] = [featureOf(first), featureOf(second)];
  await one.shape?.(scene);
  // After something was done to the post, the other feature can only give another shape to it.
  const reshapes = (first === restore || one.before !== undefined) && other.reshape !== undefined;
  if (!reshapes || second === 'native hand-over') await other.shape?.(scene);
  if (!(await create(scene)) || first === restore) return;
  await one.before?.(scene);
  if (reshapes) await other.reshape?.(scene);
  await other.before?.(scene);
};

/** Does after the restore what the second feature does while a post waits. */
export const beginRestored = async (scene: Scene, { first, second }: Pair): Promise<void> => {
  if (scene.postId === '' || first !== restore) return;
  const other = featureOf(second);
  await other.reshape?.(scene);
  await other.before?.(scene);
};

/** Does what is done right after the time of the post, or days later. */
export const goOn = async (scene: Scene, { first, second }: Pair, when: 'after' | 'daysLater'): Promise<void> => {
  if (scene.postId === '') return;
  for (const name of [first, second]) await featureOf(name)[when]?.(scene);
};
