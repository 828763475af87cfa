/** Child processes of a test that die, or stop, at a named fault point and end with the test. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { built } from './bundles.ts';
import { until } from './until.ts';

export class Mortals {
  readonly #script: string;
  readonly #args: () => readonly string[];
  readonly #children = new Set<ChildProcess>();

  /** @param script a program that prints a line once it works, and ends with its standard input */
  constructor(script: string, args: () => readonly string[]) {
    this.#script = script;
    this.#args = args;
  }

  /** Starts one and waits for its first line. `fault` is empty for one that must survive. */
  async child(
    fault: string,
    signal: 'SIGKILL' | 'SIGSTOP' = 'SIGKILL',
    env: Readonly<Record<string, string>> = {},
  ): Promise<ChildProcess> {
    const made = spawn(process.execPath, [built(this.#script), ...this.#args()], {
      env: { ...process.env, ...env, POSTLINE_FAULT: fault, POSTLINE_FAULT_SIGNAL: signal },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#children.add(made);
    const ended = once(made, 'close').then(() => {
      throw new Error(`${this.#script} ended before it was ready`);
    });
    ended.catch(() => undefined);
    await Promise.race([once(made.stdout as NodeJS.ReadableStream, 'data'), ended]);
    return made;
  }

  /** Waits until it died at its fault point. */
  async died(one: ChildProcess): Promise<void> {
    await until('the child died at its point', () => one.exitCode !== null || one.signalCode !== null, {
      withinMs: 60_000,
    });
    assert.equal(one.signalCode, 'SIGKILL', 'the child did not die at its point');
  }

  async end(): Promise<void> {
    for (const one of this.#children) {
      if (one.exitCode !== null || one.signalCode !== null) continue;
      one.kill('SIGKILL');
      await once(one, 'exit');
    }
  }
}
