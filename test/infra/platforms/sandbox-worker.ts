/** A publisher that dies at one gap: tells its parent each step it appended, and is killed where it is told to be. */
import type { Checkpoint, Json, PublishRequest } from '#contracts/ports/platform.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { clipForAdapter } from '#test/support/clip.ts';

interface Order {
  readonly url: string;
  readonly gap: string;
  readonly asked: PublishRequest;
}

const { url, gap, asked } = JSON.parse(process.env.SANDBOX_WORKER ?? '{}') as Order;
const network = new SandboxNetwork({
  database: { url, connections: 2 },
  faultPoint: (name) => {
    if (name === gap) process.kill(process.pid, 'SIGKILL');
  },
});

const append = (step: string, data: Json, deadline: string | null) =>
  new Promise<void>((resolve, reject) => {
    const checkpoint: Checkpoint = { attempt: asked.attempt, step, data, deadline };
    process.send?.(checkpoint, (error: Error | null) => (error ? reject(error) : resolve()));
  });

// Functions do not cross to another process.
const clip = await clipForAdapter();
const media = asked.media.map((one) => ({ ...clip, ...one }));
const outcome = await network.publish(
  { ...asked, media },
  {
    checkpoint: (step, data) => append(step, data, null),
    boundary: async (data) => {
      await append('boundary', data, new Date(Date.now() + 3000).toISOString());
      return AbortSignal.timeout(3000);
    },
    moved: () => undefined,
    signal: new AbortController().signal,
  },
);
throw new Error(`still alive after ${outcome.kind}`);
