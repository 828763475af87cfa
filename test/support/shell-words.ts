import { spawnSync } from 'node:child_process';

/** The words that a POSIX shell gives to `command` in this script, which runs nothing else. */
export const wordsOf = (command: string, script: string, env: Readonly<Record<string, string>> = {}): string[] => {
  const { status, stdout, stderr } = spawnSync('sh', ['-euc', `${command}() { printf '%s\\0' "$@"; }\n${script}`], {
    env: { PATH: process.env.PATH ?? '', ...env },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`sh: ${stderr}\n${script}`);
  return stdout.split('\0').slice(0, -1);
};

export interface CurlCall {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** @throws Error on an option that no sample has */
export const curlCall = (script: string, env: Readonly<Record<string, string>>): CurlCall => {
  const [...words] = wordsOf('curl', script, env);
  const headers: Record<string, string> = {};
  let method = 'GET';
  let url = '';
  let body: string | null = null;
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === '-sS' || word === '-s') continue;
    if (word === '-X') method = words.shift() ?? '';
    else if (word === '-d') body = words.shift() ?? '';
    else if (word === '-H') {
      const [, name = '', value = ''] = /^([^:]+): (.*)$/.exec(words.shift() ?? '') ?? [];
      headers[name.toLowerCase()] = value;
    } else if (url === '' && word.startsWith('http')) url = word;
    else throw new Error(`not understood: ${word}`);
  }
  return { method, url, headers, body };
};
