import type { NativeScheduler, PlatformAdapter, PublishSteps } from '#contracts/ports/platform.ts';

/**
 * The one place that everything passes which this service does on a network for a post. While publishing is held the
 * adapter is not called. Giving a token back is not held: it shows nothing, and who disconnects an account counts on it.
 */

/** Publishing is held: the call was not made. */
export class PublishingHeld extends Error {
  constructor() {
    super('publishing is held; nothing was called');
    this.name = 'PublishingHeld';
  }
}

/** `outward`: it changes something on the network. `scheduler`: it answers another port, with members of its own. */
type Kind = 'figure' | 'question' | 'outward' | 'scheduler';

/** A member of the port that is missing here is a fault that tsc reports, and at run time it counts as outward. */
export const adapterMembers: { readonly [Member in keyof Required<PlatformAdapter>]: Kind } = {
  boundaryDeadlineMs: 'figure',
  settleWindowMs: 'figure',
  processingLimitMs: 'figure',
  absenceIsProof: 'figure',
  listsOwnPosts: 'figure',
  apiVersion: 'figure',
  reconcile: 'question',
  findPosts: 'question',
  publish: 'outward',
  comment: 'outward',
  afterStep: 'outward',
  removePost: 'outward',
  canRemove: 'question',
  nativeScheduler: 'scheduler',
};
export const schedulerMembers: { readonly [Member in keyof Required<NativeScheduler>]: Kind } = {
  handOver: 'outward',
  undo: 'outward',
  reschedule: 'outward',
  revise: 'outward',
  verify: 'question',
};

type Call = (...given: readonly unknown[]) => unknown;

const isSteps = (given: unknown): given is PublishSteps =>
  typeof given === 'object' && given !== null && 'boundary' in given && typeof given.boundary === 'function';

/** Minutes may pass between the first step and the boundary: a hold that was set since stops the post there. */
const held = (steps: PublishSteps, pass: () => Promise<void>): PublishSteps => ({
  signal: steps.signal,
  checkpoint: (step, data) => steps.checkpoint(step, data),
  moved: (bytes) => steps.moved(bytes),
  boundary: async (data) => {
    await pass();
    return steps.boundary(data);
  },
});

const behind = <Port extends object>(
  port: Port,
  members: Readonly<Record<string, Kind>>,
  pass: () => Promise<void>,
): Port =>
  new Proxy(port, {
    get: (its, name) => {
      const member: unknown = Reflect.get(its, name, its);
      if (typeof member !== 'function') return member;
      const call: Call = member.bind(its);
      const kind = typeof name === 'string' && Object.hasOwn(members, name) ? members[name] : 'outward';
      if (kind === 'figure' || kind === 'question') return call;
      if (kind === 'scheduler') {
        return (...given: readonly unknown[]) => {
          const scheduler = call(...given) as NativeScheduler | null;
          return scheduler === null ? null : behind(scheduler, schedulerMembers, pass);
        };
      }
      return async (...given: readonly unknown[]) => {
        await pass();
        return call(...given.map((one) => (isSteps(one) ? held(one, pass) : one)));
      };
    },
  });

/** @param isHeld whether publishing is held for the workspace whose post it is */
export const behindWall = (adapter: PlatformAdapter, isHeld: () => Promise<boolean>): PlatformAdapter =>
  behind(adapter, adapterMembers, async () => {
    if (await isHeld()) throw new PublishingHeld();
  });
