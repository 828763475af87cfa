import assert from 'node:assert/strict';
import type { NativeScheduler, PlatformAdapter, PublishSteps } from '#contracts/ports/platform.ts';
import { adapterMembers, behindWall, PublishingHeld, schedulerMembers } from '#runtime/work/publishing-wall.ts';
import { suite } from '#test/support/suite.ts';

type Call = (...given: readonly unknown[]) => unknown;

suite('the wall of held publishing', (t) => {
  /** A network whose every member tells that it was called; one member more than the port has. */
  const network = () => {
    const called: string[] = [];
    const telling = (names: readonly string[]): Record<string, Call> =>
      Object.fromEntries(names.map((name) => [name, () => void called.push(name)]));
    const scheduler = telling(Object.keys(schedulerMembers));
    const adapter = { ...telling([...Object.keys(adapterMembers), 'laterMember']), nativeScheduler: () => scheduler };
    return { adapter: adapter as unknown as PlatformAdapter, called };
  };
  const membersOf = (adapter: PlatformAdapter): readonly (readonly [string, string, Call])[] => {
    const scheduler = adapter.nativeScheduler?.('facebook') as NativeScheduler;
    const read = (port: object, kinds: Readonly<Record<string, string>>) =>
      Object.entries(kinds).map(([name, kind]) => [name, kind, Reflect.get(port, name) as Call] as const);
    return [...read(adapter, { ...adapterMembers, laterMember: 'outward' }), ...read(scheduler, schedulerMembers)];
  };

  t('while it stands, nothing outward is called and every question is', async () => {
    const { adapter, called } = network();
    const members = membersOf(behindWall(adapter, async () => true));
    for (const [name, kind, call] of members) {
      if (kind === 'scheduler') continue;
      if (kind === 'outward') await assert.rejects(async () => call({}, {}), PublishingHeld, name);
      else await call();
    }
    const quiet = members.filter(([, kind]) => kind === 'question' || kind === 'figure').map(([name]) => name);
    assert.deepEqual(called, quiet);
    const outward = members.filter(([, kind]) => kind === 'outward').map(([name]) => name);
    assert.deepEqual(outward.sort(), [
      ...['afterStep', 'comment', 'handOver', 'laterMember', 'publish', 'removePost', 'reschedule', 'revise', 'undo'],
    ]);
  });

  t('without it, everything is called as it is', async () => {
    const { adapter, called } = network();
    const members = membersOf(behindWall(adapter, async () => false));
    for (const [, kind, call] of members) if (kind !== 'scheduler') await call({}, {});
    assert.deepEqual(
      called,
      members.filter(([, kind]) => kind !== 'scheduler').map(([name]) => name),
    );
  });

  t('a hold that comes between the first step and the boundary stops the post before the boundary', async () => {
    let isHeld = false;
    const recorded: string[] = [];
    const steps: PublishSteps = {
      checkpoint: async (step) => void recorded.push(step),
      moved: () => undefined,
      boundary: async () => {
        recorded.push('boundary');
        return new AbortController().signal;
      },
      signal: new AbortController().signal,
    };
    const adapter = {
      publish: async (_request: unknown, given: PublishSteps) => {
        await given.checkpoint('upload', null);
        isHeld = true;
        await given.boundary(null);
        return { kind: 'published' };
      },
    } as unknown as PlatformAdapter;
    const walled = behindWall(adapter, async () => isHeld);
    await assert.rejects(walled.publish({} as Parameters<PlatformAdapter['publish']>[0], steps), PublishingHeld);
    assert.deepEqual(recorded, ['upload']);
  });
});
