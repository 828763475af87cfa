/** A video of 500 MB to the simulated TikTok, whose worker is killed twice on the way: the third one ends it. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { Checkpoint } from '#contracts/ports/platform.ts';
import { appOf, tiktokWorld } from '#test/support/networks/tiktok/world.ts';
import { suite } from '#test/support/suite.ts';
import type { Reported, Tells } from './upload-child.ts';

const [bytes, part] = [500_000_000, 10_000_000];
/** Of the video before it, in three parts. */
const smallBytes = 30_000_000;
/** Resident memory that an upload may cost its worker. */
const mostGrownBytes = 48 * 1024 * 1024;

type Ended = Extract<Tells, { kind: 'ended' }>;

suite('a killed upload to tiktok', { drawn: true, timeoutMs: 120_000 }, (t) => {
  t(
    '19: of 500 MB costs no second init, at most the part on its way again, and a worker at most 48 MB of memory',
    async () => {
      const world = await tiktokWorld();
      const { state } = world.network;
      try {
        const account = await world.account();
        const accessToken = String((await world.credentials.read(account.id))?.secret.accessToken);
        const { media, ...request } = world.request(account, { media: [world.files.video({}, bytes)] });
        const [video] = media;
        assert.ok(video !== undefined);
        const small = world.files.video({}, smallBytes);
        const checkpoints: Checkpoint[] = [];
        const work = async (attempt: number, killAfter: number): Promise<Ended | null> => {
          const reported: Reported = {
            ...{ app: appOf(world.network), file: await video.file(), accessToken, media: video },
            request: { ...request, attempt, checkpoints },
            warmUp: killAfter === Number.POSITIVE_INFINITY ? { file: await small.file(), media: small } : null,
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
        assert.deepEqual([await work(1, 3), await work(2, 2)], [null, null]);
        const kept = JSON.stringify(checkpoints);
        assert.ok(!kept.includes('upload_token'), 'the address that takes the file stands in no checkpoint');
        const ended = await work(3, Number.POSITIVE_INFINITY);
        assert.ok(ended !== null);
        assert.equal((ended.outcome as { kind: string }).kind, 'published', JSON.stringify(ended.outcome));
        const [post, ...others] = state.posts.filter(({ upload }) => upload?.size !== smallBytes);
        assert.ok(post?.upload !== null && post !== undefined && others.length === 0, 'one init');
        assert.equal(post.upload.received, bytes);
        const again = post.upload.arrived - bytes;
        // Each worker that died may have had one part on its way.
        assert.ok(again >= 0 && again <= 2 * part, `${again} bytes were sent again`);
        assert.ok(ended.grownBytes <= mostGrownBytes, `grew by ${ended.grownBytes} bytes`);
      } finally {
        world.close();
      }
    },
  );
});
