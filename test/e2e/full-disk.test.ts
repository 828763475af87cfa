/** Standalone on a disk that is filled to the last byte under load, and what is left when there is room again. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { built } from '#test/support/bundles.ts';
import { type Answered, type Caller, callerOf } from '#test/support/http.ts';
import { prepare, targetsOf } from '#test/support/main-job.ts';
import { printedUrl } from '#test/support/processes.ts';
import { smallDisk } from '#test/support/small-disk.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const root = path.resolve(import.meta.dirname, '../..');
/** Room for the cluster, some segments of its log, and some hundred posts. */
const disk = await smallDisk(200);

/** The post, once its target has an outcome. A call that the sandbox broke off for want of room may stay unknown. */
const settled = async (http: Caller, id: string): Promise<Answered | null> => {
  const answered = await http.get(`/posts/${id}`).catch(() => null);
  if (answered?.status !== 200) return null;
  // Each post has one target. Its row comes late where the fan-out waited for room.
  const [target] = targetsOf(answered);
  return target?.status === 'published' || target?.status === 'outcome_unknown' ? answered : null;
};

/** Callers that post one after the other, through all that happens. */
class Load {
  readonly acknowledged: string[] = [];
  /** Of all answers that were neither 200 nor 503. */
  readonly wrong: string[] = [];
  refused = 0;
  readonly #http: Caller;
  readonly #clientId: string;
  readonly #stop = new AbortController();
  readonly #going: readonly Promise<void>[];

  constructor(http: Caller, clientId: string, callers: number) {
    this.#http = http;
    this.#clientId = clientId;
    this.#going = Array.from({ length: callers }, () => this.#go());
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#going);
  }

  async #go(): Promise<void> {
    const clientId = this.#clientId;
    const body = {
      ...{ clientId, content: 'Soup of the day.', schedule: { type: 'now' } },
      targets: { mode: 'group', clientId, platforms: ['x'] },
    };
    while (!this.#stop.signal.aborted) {
      try {
        const { status, text, data } = await this.#http.post('/posts', body);
        if (status === 200) this.acknowledged.push(data.id);
        else if (status === 503) this.refused += 1;
        else this.wrong.push(`${status} ${text}`);
      } catch (error) {
        this.wrong.push(String(error));
      }
      // A pace that leaves two cores time for others: some posts are under way at any time.
      await delay(100);
    }
  }
}

suite('full disk', { drawn: true, costs: 12, timeoutMs: 120_000 }, (t) => {
  const name = 'standalone refuses posts while its disk is full, and loses and doubles none';
  if (typeof disk === 'string') return t.skip(name, disk);
  const data = path.join(disk.dir, 'data');
  const filler = path.join(disk.dir, 'filler');
  t.after(() => disk.close());

  /** @returns what it wrote until it served */
  const begin = async (): Promise<string> => {
    const main = built(path.join(root, 'services/standalone/main.ts'));
    await disk.run(`cd ${root} && { ${process.execPath} ${main} --data ${data} --port 0 --no-tour & } && pid=$!`);
    await until('standalone', async () => /^Serving/m.test(disk.output()), { withinMs: 60_000 });
    return disk.output();
  };
  const end = () => disk.run('kill -TERM $pid && wait $pid');
  const database = async () => {
    const password = await disk.run(`cat ${data}/pg.password`);
    const port = await disk.run(`sed -n 4p ${data}/cluster/postmaster.pid`);
    const client = new pg.Client({ connectionString: `postgresql://postline:${password}@127.0.0.1:${port}/postline` });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };

  t(name, async () => {
    const output = await begin();
    const testKey = /sk_test_\S+/.exec(output)?.[0] ?? '';
    const api = printedUrl(output);
    const ops = /^Health and metrics, for you alone: (\S+)\/readyz/m.exec(output)?.[1] ?? '';
    const http = callerOf(() => api, testKey);
    const readiness = async () => {
      const answer = await fetch(`${ops}/readyz`);
      return { status: answer.status, text: await answer.text() };
    };
    const dropped = async (): Promise<number> => {
      const text = await (await fetch(`${ops}/metrics`)).text();
      return [...text.matchAll(/^log_lines_dropped_total\S* (\d+)/gm)].reduce((sum, [, n]) => sum + Number(n), 0);
    };
    const { clientId } = await prepare(http, { usernames: {} });
    const load = new Load(http, clientId, 4);
    try {
      await until('posts are taken', async () => load.acknowledged.length >= 20);
      await disk.run(`{ cat /dev/zero >${filler}; cat /dev/zero >>${filler}; } 2>/dev/null || true`);
      await until('posts are refused', async () => load.refused > 0);
      const { status, text } = await readiness();
      assert.equal(status, 503);
      assert.ok(
        text.includes(`{"name":"disk","ok":false,"detail":"The disk under ${data} is full, 0 MiB are left`),
        text,
      );
      await until('lines of the log are dropped', async () => (await dropped()) > 0);
      // Sooner or later the log of Postgres needs a new file, and it ends for want of one.
      const client = await database();
      const switches = async () => {
        for (;;) await client.query(`select pg_logical_emit_message(false, '', ''), pg_switch_wal()`);
      };
      await assert.rejects(switches(), /No space left on device|terminat/);
      await client.end().catch(() => undefined);
      // Whether it ends at once is its own affair; that nobody is told must not be.
      let last = '';
      const isAnswered = async (): Promise<boolean> => {
        const answers = await database().then(
          (client) => client.end().then(() => true),
          (error: unknown) => {
            last = String(error);
            return false;
          },
        );
        if (answers) return true;
        const { text: reported } = await readiness();
        last = `${last}\n${reported}`;
        const [, reason] = /"postgres","ok":false,"detail":"(The embedded Postgres[^"]*)/.exec(reported) ?? [];
        if (reason !== undefined) process.stdout.write(`  ${reason}\n`);
        return reason !== undefined;
      };
      await until('Postgres answers, or /readyz tells that it does not', isAnswered).catch(async (error: unknown) => {
        const log = await disk.run(`tail -n 20 ${data}/pg.log`);
        throw new Error(`${error}; last: ${last}\n${log}`);
      });
      const refused = load.refused;
      await until('posts are still refused', async () => load.refused > refused);

      await disk.run(`rm ${filler}`);
      const [room, before] = [performance.now(), load.acknowledged.length];
      await until('posts are taken again', async () => load.acknowledged.length > before + 10, { withinMs: 15_000 });
      process.stdout.write(`  posts are taken ${Math.round(performance.now() - room)} ms after there was room\n`);
    } finally {
      await load.end();
    }
    assert.deepEqual(load.wrong, []);
    const out: string[] = [];
    const unknown: string[] = [];
    for (const id of load.acknowledged) {
      const post = await until(`post ${id} is out, or its call broke off`, () => settled(http, id), {
        withinMs: 60_000,
        everyMs: 50,
      });
      for (const one of targetsOf(post)) (one.status === 'published' ? out : unknown).push(one.id);
    }
    assert.equal(out.length + unknown.length, load.acknowledged.length);
    assert.ok(out.length > 30, `${out.length} targets are out`);
    const client = await database();
    const { rows } = await client.query<{ id: string; created: number }>(
      `select target_id::text as id, count(*)::int as created from sandbox.ledger
       where outcome = 'created' and target_id = any($1) group by 1`,
      [[...out, ...unknown]],
    );
    await client.end();
    const created = new Map(rows.map((row) => [row.id, row.created]));
    assert.deepEqual(
      [...created].filter(([, times]) => times !== 1),
      [],
    );
    assert.deepEqual(
      out.filter((id) => !created.has(id)),
      [],
    );
    await until('it is ready', async () => (await readiness()).status === 200);
    // Each thread tells its own.
    await until('the log tells all that were dropped', async () => {
      const lines = await disk.run(`grep -h '"msg":"log lines could not be written"' ${data}/standalone.log || true`);
      const reported = [...lines.matchAll(/"dropped":(\d+),"why":"ENOSPC"/g)].reduce(
        (sum, [, n]) => sum + Number(n),
        0,
      );
      return reported > 0 && reported === (await dropped());
    });
    await end();
  });
});
