import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { execFile as execute, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { TranscodeError } from '#contracts/ports/transcoder.ts';
import { limits, runTool } from '#infra/ffmpeg/child.ts';
import { isolation } from '#infra/ffmpeg/isolation.ts';
import { makeClip } from '#test/support/media/clips.ts';
import { mediaFolder } from '#test/support/media/folder.ts';
import { aliveIn, toolsOf } from '#test/support/media/groups.ts';
import { never } from '#test/support/media/specs.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const execFile = promisify(execute);
const root = fileURLToPath(new URL('../../../', import.meta.url));

const { network, user } = await isolation();

suite('a tool run within limits', { drawn: true, costs: 9 }, (t) => {
  const folder = mediaFolder();
  const sh = (script: string, given = limits({}), signal = never()) =>
    runTool('/bin/sh', ['-c', script], given, signal);

  t('answers with its exit code, its output and the end of its stderr', async () => {
    deepEqual(await sh('echo hello; echo oh >&2; exit 3'), {
      code: 3,
      stdout: 'hello\n',
      stderr: 'oh\n',
      struck: null,
    });
    const { stderr } = await sh('i=0; while [ $i -lt 5000 ]; do echo 0123456789 >&2; i=$((i+1)); done');
    equal(stderr.length, 16_384);
  });

  t('sees no variable of our environment', async () => {
    const { stdout } = await sh('env');
    deepEqual(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split('=')[0])
        .filter((name) => !['_', 'PWD', 'SHLVL', 'OLDPWD'].includes(name ?? ''))
        .sort(),
      ['LC_ALL', 'MALLOC_ARENA_MAX', 'PATH'],
    );
  });

  t('is ended at each limit', async () => {
    equal((await sh('while :; do :; done', limits({ cpuSeconds: 1 }))).struck, 'processor');
    equal(
      (await sh('while :; do echo 0123456789012345678901234567890123456789; done', limits({ answerBytes: 10_000 })))
        .struck,
      'answer',
    );
    const file = join(folder, 'large');
    const write = `trap - XFSZ; while :; do echo 0123456789012345678901234567890123456789; done > ${file}`;
    ok((await sh(write, limits({ fileBytes: 1_000_000, wallMs: 20_000 }))).code !== 0);
    const eat = ['-e', 'const all = []; for (;;) all.push(Buffer.alloc(64 * 2 ** 20, 1));'];
    const ended = await runTool(process.execPath, eat, limits({ memory: 3 * 2 ** 30 }), never());
    ok(ended.code !== 0 && ended.struck === null);
  });

  t(
    'that runs out of time or is killed from outside fails with a plain error that does not blame the file',
    async () => {
      const isPlain = (words: string) => (error: unknown) => {
        ok(error instanceof Error && !(error instanceof TranscodeError), String(error));
        return error.message === words;
      };
      await rejects(sh('exec sleep 600', limits({ wallMs: 200 })), isPlain('a tool ran out of time'));
      await rejects(sh('kill -s KILL $$'), isPlain('a tool was killed from outside'));
    },
  );

  const declare = network ? t : (name: string) => t.skip(name, 'this system lets us not take the network from a tool');

  declare('reaches no address, not even of this machine', async () => {
    let calls = 0;
    const server = createServer((socket) => {
      calls += 1;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const dial = `require('net').connect(${port}, '127.0.0.1')
      .on('connect', () => console.log('connected')).on('error', ({ code }) => console.log(code));`;
    const { stdout } = await runTool(process.execPath, ['-e', dial], limits({}), never());
    server.close();
    await once(server, 'close');
    match(stdout, /^E[A-Z]+\n$/);
    equal(calls, 0);
  });

  const asRoot = user ? t : () => {};
  if (!user) {
    t('runs as our user where we are not root', async () => {
      equal((await sh('id -u')).stdout, `${process.geteuid?.()}\n`);
      ok(process.geteuid?.() !== 0);
    });
  }

  asRoot('runs as another user: reads neither our environment nor our files, and writes only its output', async () => {
    const secret = join(folder, 'secret');
    const [granted, other] = [join(folder, 'granted'), join(folder, 'other')];
    await writeFile(secret, 'ours', { mode: 0o600 });
    const tries = [
      'id -u',
      `cat /proc/${process.pid}/environ ${secret} || echo refused`,
      `echo a > ${granted}; echo b > ${other} || echo refused`,
    ];
    const { stdout, stderr } = await sh(tries.join('; '), limits({ writes: [granted] }));
    const [uid = '0', ...answers] = stdout.trim().split('\n');
    ok(Number(uid) > 65_535, `${stdout}${stderr}`);
    deepEqual(answers, ['refused', 'refused']);
    equal(readFileSync(granted, 'utf8'), 'a\n');
    equal(existsSync(other), false);
    // Two at once cannot signal each other, nor is there a way back to who we are.
    const second = await sh('id -u; grep NoNewPrivs /proc/self/status');
    ok(!second.stdout.startsWith(uid));
    match(second.stdout, /NoNewPrivs:\s+1/);
  });

  asRoot('runs as our user over what is closed to others, and is no worse off for it', async () => {
    const closed = join(folder, 'closed');
    await mkdir(closed, { mode: 0o700 });
    const file = join(closed, 'file');
    await writeFile(file, 'film');
    equal((await sh(`cat ${file}`, limits({ reads: [file] }))).stdout, 'film');
    await chmod(closed, 0o711);
    equal((await sh(`cat ${file}; id -u`, limits({ reads: [file] }))).stdout.startsWith('film0'), false);
  });

  /** In a process of its own, begun by these: what it prints. @param before of the script that prints */
  const apart = async (before: readonly string[], script: string, env = process.env): Promise<unknown> => {
    const [program = '', ...args] = [...before, process.execPath, '--input-type=module', '-e', prelude + script];
    return JSON.parse((await execFile(program, args, { env, cwd: root, timeout: 60_000 })).stdout);
  };
  const prelude = `
    import { closeSync, openSync } from 'node:fs';
    import { limits, runTool } from '#infra/ffmpeg/child.ts';
    import { isolation } from '#infra/ffmpeg/isolation.ts';
    const ran = () => runTool('/bin/sh', ['-c', 'echo ran'], limits({}), new AbortController().signal)
      .then(({ code, stdout }) => stdout + code, (error) => error.kind ?? error.message);
    const tell = (...answers) => console.log(JSON.stringify(answers));`;

  t('fails, but never runs without isolation, while our process can open no more files', async () => {
    const script = `
      const full = () => { const all = []; try { for (;;) all.push(openSync('/dev/null')); } catch { return all; } };
      const [first, none] = [full(), await ran()];
      first.forEach(closeSync);
      const found = await isolation();
      const [second, again] = [full(), await ran()];
      second.forEach(closeSync);
      tell(none, found.network, found.user, again, await ran());`;
    const few = ['sh', '-c', 'ulimit -n 64; exec "$0" "$@"'];
    deepEqual(await apart(few, script), ['interrupted', network, user, 'interrupted', 'ran\n0']);
  });

  t('is isolated whatever our PATH is', async () => {
    const script = 'const { network, user } = await isolation(); tell(network, user);';
    deepEqual(await apart([], script, { PATH: '/nowhere' }), [network, user]);
  });

  asRoot('that the machine has no process for is interrupted: the file is not to blame', async () => {
    deepEqual(await apart(['prlimit', '--nproc=1'], 'tell(await ran());'), ['interrupted']);
  });

  t('an abort ends the whole process group', async () => {
    const stop = new AbortController();
    const running = sh('sleep 600 & sleep 600; true', limits({}), stop.signal);
    await until('both sleep', () => toolsOf(process.pid).filter(({ name }) => name === 'sleep').length === 2);
    const group = toolsOf(process.pid)[0]?.group ?? 0;
    stop.abort();
    await rejects(running, { kind: 'interrupted' });
    await until('only the sleepers are left', () => aliveIn(group).filter(({ name }) => name !== 'sleep').length === 0);
  });

  t('is not started after an abort', async () => {
    await rejects(sh('true', limits({}), AbortSignal.abort()), { kind: 'interrupted' });
    await rejects(
      runTool(join(folder, 'nothing'), [], limits({}), never()).then(({ code }) => {
        if (code !== 0) throw Object.assign(new Error(), { kind: 'not started' });
      }),
      { kind: 'not started' },
    );
  });

  t('ends when our process is killed', async () => {
    const path = await makeClip(folder, { seconds: 30, width: 640, height: 360 });
    const child = fork(new URL('../../support/media/orphan.ts', import.meta.url), [path, folder]);
    await once(child, 'message');
    const group = toolsOf(child.pid ?? 0).find(({ name }) => name === 'ffmpeg')?.group ?? 0;
    ok(group > 0);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await until('the tool is gone', () => aliveIn(group).length === 0);
    ok(existsSync(join(folder, 'made.mp4')), 'it was killed in the middle of its work');
  });
});
