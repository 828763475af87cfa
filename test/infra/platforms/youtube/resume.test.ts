/** A video of 2 GB whose worker is killed: the next one goes on, and none holds more of it than a few pieces. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { Checkpoint, PublishMedia } from '#contracts/ports/platform.ts';
import { youtubeWorld } from '#test/support/networks/youtube/world.ts';
import { suite } from '#test/support/suite.ts';
import type { Reported, Tells } from './upload-child.ts';

const bytes = 2 * 1_024 ** 3 + 1_234_567;
/** Checkpoints after which each worker is killed. */
const kills = [3, 5];
/** Of a kill: the part that was on its way, and one that left before it struck; the session says what it has. */
const mostAgainBytes = kills.length * 2 * 34 * 1_024 ** 2;
/** Resident memory that an upload may cost its worker. */
const mostGrownBytes = 48 * 1_024 ** 2;

/** Of the video before it, in three parts. */
const smallBytes = 17 * 1_024 ** 2;

const asGiven = async ({ file, url: _, ...media }: PublishMedia) => ({ file: await file(), media });

type Ended = Extract<Tells, { kind: 'ended' }>;

suite('a killed upload to youtube', { drawn: true, timeoutMs: 240_000 }, (t) => {
  t('of 2 GB begins one session, and a worker costs at most 48 MB of memory', async () => {
    const world = await youtubeWorld();
    try {
      const { state } = world.network;
      const account = await world.account();
      const secret = (await world.credentials.read(account.id))?.secret;
      const { media, ...request } = world.request(account, { media: [world.video(bytes)] });
      const [video] = media;
      assert.ok(video !== undefined);
      const checkpoints: Checkpoint[] = [];
      const [plain, small] = await Promise.all([video, world.video(smallBytes)].map(asGiven));
      assert.ok(plain !== undefined && small !== undefined);
      const work = async (attempt: number, killAfter: number): Promise<Ended | null> => {
        const reported: Reported = {
          ...{ env: world.network.env, ...plain, accessToken: String(secret?.accessToken) },
          request: { ...request, attempt, checkpoints },
          warmUp: killAfter === Number.POSITIVE_INFINITY ? small : null,
        };
        const child = fork(path.join(import.meta.dirname, 'upload-child.ts'), [JSON.stringify(reported)]);
        let left = killAfter;
        let ended: Ended | null = null;
        child.on('message', (message) => {
          const tells = message as Tells;
          if (tells.kind === 'ended') ended = tells;
          else if (left > 0) {
            checkpoints.push({ attempt, step: tells.step, data: tells.data, deadline: null });
            left -= 1;
            if (left === 0) child.kill('SIGKILL');
          }
        });
        await once(child, 'exit');
        return ended;
      };
      for (const [at, after] of kills.entries()) assert.equal(await work(at + 1, after), null);
      const ended = await work(kills.length + 1, Number.POSITIVE_INFINITY);
      assert.equal((ended?.outcome as { kind?: string } | undefined)?.kind, 'published', JSON.stringify(ended));
      // One session of each, and one video.
      assert.equal(state.sessions.size, 2);
      assert.deepEqual(
        state.videos.map((made) => made.bytes),
        [smallBytes, bytes],
      );
      const sent = state.calls.reduce((sum, call) => sum + (call.method === 'PUT' ? call.sent : 0), 0) - smallBytes;
      assert.ok(sent >= bytes && sent - bytes <= mostAgainBytes, `${sent - bytes} bytes were sent again`);
      assert.ok((ended?.grownBytes ?? 0) <= mostGrownBytes, `grew by ${ended?.grownBytes} bytes`);
    } finally {
      world.close();
    }
  });
});
