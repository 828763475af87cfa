/**
 * A disk of a few hundred megabytes that a test can fill to the last byte: a tmpfs in its own mount namespace, with a
 * shell in it that runs lines. The shell is the first process of a process namespace and reads its lines from our pipe:
 * however we die, the pipe closes, the shell ends, the system kills every process in there, and the mount disappears.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { afterFile } from './suite.ts';

export interface SmallDisk {
  /** Its mount point for processes that the shell starts; an empty folder for all others. */
  readonly dir: string;
  /**
   * Runs a line of shell; `&` at the end of a command leaves it running. @returns its output @throws when it fails or
   * takes longer
   */
  run(line: string, within?: number): Promise<string>;
  /** All output so far. */
  output(): string;
  /** Kills the processes in there and removes the disk. */
  close(): Promise<void>;
}

/** Root may mount; another user gets the right in a user namespace, as themselves: Postgres does not run as root. */
const rights = process.getuid?.() === 0 ? [] : ['--user', '--map-current-user', '--keep-caps'];
const namespaces = [...rights, '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
const shell = 'mount -t tmpfs -o size="$1",mode=755 tmpfs "$2" && cd "$2" && while read -r line; do eval "$line"; done';

class Disk implements SmallDisk {
  readonly dir: string;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #closed: Promise<unknown>;
  #output = '';
  #lines = 0;

  constructor(mebibytes: number) {
    this.dir = mkdtempSync(path.join(tmpdir(), 'postline-disk-'));
    chmodSync(this.dir, 0o755);
    const args = [...namespaces, '/bin/sh', '-c', shell, 'sh', `${mebibytes}m`, this.dir];
    this.#child = spawn('unshare', args, { cwd: '/', stdio: ['pipe', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.on('data', (text) => {
        this.#output += String(text);
        this.#child.emit('output');
      });
    }
    // A line for a shell that has ended: `run` reports it.
    this.#child.stdin.on('error', () => undefined);
    this.#child.once('error', (error) => {
      this.#output += error.message;
    });
    this.#closed = once(this.#child, 'close').finally(() => this.#child.emit('output'));
    this.#closed.catch(() => undefined);
    afterFile(() => this.close());
  }

  output(): string {
    return this.#output;
  }

  async run(line: string, within = 30_000): Promise<string> {
    this.#lines += 1;
    const from = this.#output.length;
    const end = new RegExp(`^line ${this.#lines} ended with (\\d+)$`, 'm');
    const signal = AbortSignal.timeout(within);
    this.#child.stdin.write(`${line}\nprintf '\\nline ${this.#lines} ended with %s\\n' $?\n`);
    for (;;) {
      const written = this.#output.slice(from);
      const code = end.exec(written)?.[1];
      if (code === '0') return written.slice(0, written.search(end)).trim();
      if (code !== undefined || this.#ended) throw new Error(`${line}: ${written.trim()}`);
      await once(this.#child, 'output', { signal });
    }
  }

  get #ended(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined;
  }

  async close(): Promise<void> {
    this.#child.stdin.end();
    await this.#closed.catch(() => undefined);
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** @returns a reason where the system allows none */
export const smallDisk = async (mebibytes: number): Promise<SmallDisk | string> => {
  const disk = new Disk(mebibytes);
  try {
    await disk.run('true');
    return disk;
  } catch (error) {
    return `no disk of our own can be mounted: ${error instanceof Error ? error.message : String(error)}`;
  }
};
