import type { IncomingMessage } from 'node:http';
import { Refusal } from './refusal.ts';

/** From bytes to a JSON value that every part of ours can hold: the database refuses NUL, and lone surrogates are no text. */

/** Bytes of a body where the operation says nothing else. */
export const defaultBodyLimit = 1024 * 1024;
const deepest = 32;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** @throws Refusal 413 as soon as it is known to be too large; the rest is not read. */
export const readBody = async (req: IncomingMessage, limit: number): Promise<Buffer> => {
  const tooLarge = () => new Refusal('payload_too_large', `The body may have ${limit} bytes.`);
  if (Number(req.headers['content-length'] ?? 0) > limit) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of req.iterator({ destroyOnReturn: false })) {
      size += chunk.length;
      if (size > limit) throw tooLarge();
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw invalidJson('The body ended before its end.');
  }
  return Buffer.concat(chunks);
};

const invalidJson = (detail: string) => new Refusal('invalid_json', detail);

const escaped = (member: string): string => member.replaceAll('~', '~0').replaceAll('/', '~1');

interface Issue {
  readonly path: string;
  readonly message: string;
}

const textIssue = (text: string): string | null => {
  if (text.includes('\0')) return 'must not contain NUL';
  return text.isWellFormed() ? null : 'must be well-formed Unicode (it has a lone surrogate)';
};

/** The depth limit bounds the recursion. */
const inspect = (value: unknown, path: string, depth: number, issues: Issue[]): void => {
  if (typeof value === 'string') {
    const message = textIssue(value);
    if (message !== null) issues.push({ path, message });
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) issues.push({ path, message: 'must be a number that a double can hold' });
  } else if (typeof value === 'object' && value !== null) {
    if (depth >= deepest) throw invalidJson(`The body is more than ${deepest} levels deep.`);
    if (Array.isArray(value)) {
      value.forEach((one, index) => {
        inspect(one, `${path}/${index}`, depth + 1, issues);
      });
    } else {
      for (const [member, one] of Object.entries(value)) {
        const message = textIssue(member);
        if (message === null) inspect(one, `${path}/${escaped(member)}`, depth + 1, issues);
        else issues.push({ path, message: `has a member name that ${message}` });
      }
    }
  }
};

/** @throws Refusal 400 for what is not JSON, 422 for values nobody can hold. */
export const parseJson = (bytes: Buffer): unknown => {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch {
    throw invalidJson('The body is not well-formed JSON in UTF-8.');
  }
  const issues: Issue[] = [];
  inspect(value, '', 0, issues);
  if (issues.length > 0) throw new Refusal('validation_failed', 'The input is not valid.', { errors: issues });
  return value;
};
