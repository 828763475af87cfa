import assert from 'node:assert/strict';
import { worked } from '#test/support/mcp.ts';
import { atSignIn, startPublishing, type TripWorld } from './world.ts';

/** What a caller, a worker, a person or an agent has us do, each as one trip through the code. */

export interface Trip {
  readonly name: string;
  /** Before the trip, not counted. @returns the trip, which is taken once */
  readonly before: (world: TripWorld) => Promise<() => Promise<unknown>>;
  /** What runs beside the trip while nobody asks. */
  readonly start?: (world: TripWorld) => Promise<() => Promise<void>>;
}

const scheduledPost = ({ call, composed }: TripWorld) => call('POST', '/posts', composed.body());

const composing = ({ composed, mcp }: TripWorld) =>
  mcp.call('compose_post', {
    clientId: composed.clientId,
    content: 'A word from an agent.',
    action: 'schedule',
    scheduledAt: new Date(Date.now() + 86_400_000).toISOString(),
  });

/** Milliseconds from the call to the time of the post, so that the post is stored and projected before. */
const aheadMs = 2_500;

export const trips: readonly Trip[] = [
  { name: 'POST /v1/posts', before: async (world) => () => scheduledPost(world) },
  {
    name: 'append → project',
    before:
      async ({ world }) =>
      () =>
        world.memberOf(world.workspaceId, 'viewer'),
  },
  {
    name: 'GET /v1/posts/{id}',
    before: async (world) => {
      const { id } = await scheduledPost(world);
      return () => world.call('GET', `/posts/${id}`);
    },
  },
  { name: 'GET /v1/post-targets', before: async (world) => () => world.call('GET', '/post-targets') },
  {
    name: 'publish (sandbox X)',
    start: startPublishing,
    before: async ({ world, call, composed, stored }) => {
      const before = await world.head();
      const scheduledAt = new Date(Date.now() + aheadMs).toISOString();
      await call('POST', '/posts', composed.body({ schedule: { type: 'at', scheduledAt } }));
      await world.settled();
      return () => stored('PostTargetSettled', before);
    },
  },
  {
    name: 'POST /sign-in',
    before: async (world) => {
      const browser = await atSignIn(world);
      const { email, password } = world.member;
      return async () => assert.equal((await browser.post('/sign-in', { email, password })).status, 303);
    },
  },
  {
    name: 'GET /team',
    before:
      async ({ member }) =>
      async () =>
        assert.equal((await member.browser.get('/team')).status, 200),
  },
  { name: 'compose_post', before: async (world) => async () => worked(await composing(world)) },
  {
    name: 'find_clients',
    before:
      async ({ mcp }) =>
      async () =>
        worked(await mcp.call('find_clients', {})),
  },
];
