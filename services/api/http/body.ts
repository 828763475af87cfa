import type { IncomingMessage } from 'node:http';
import { Refusal } from '../call/refusal.ts';

/** The body of a request: its bytes under a limit, and whether its type is JSON. */

/**
 * The reader joins chunks when it holds this many. Otherwise a caller that sends single bytes makes 1 MiB of body take
 * 200 MiB of memory, one object for each byte.
 */
const maxChunks = 256;

/**
 * @param look receives each chunk as it arrives, and may refuse the rest by throwing a Refusal.
 * @throws Refusal 413 as soon as the body is known to be too large; the rest is dropped.
 */
export const readBody = async (
  req: IncomingMessage,
  limit: number,
  look: (chunk: Buffer) => void = () => undefined,
): Promise<Buffer> => {
  const tooLarge = () => new Refusal('payload_too_large', `The body may have ${limit} bytes.`);
  if (Number(req.headers['content-length'] ?? 0) > limit) throw tooLarge();
  const chunks: Buffer[] = [];
  let joined = 0;
  let size = 0;
  try {
    for await (const chunk of req.iterator({ destroyOnReturn: false })) {
      size += chunk.length;
      if (size > limit) throw tooLarge();
      look(chunk);
      chunks.push(chunk);
      if (chunks.length - joined === maxChunks) {
        chunks.push(Buffer.concat(chunks.splice(joined)));
        joined += 1;
      }
    }
  } catch (error) {
    if (error instanceof Refusal) {
      // The api drops the rest of the body as it arrives, because the next request of this connection follows it.
      req.resume();
      throw error;
    }
    throw new Refusal('invalid_json', 'The body ended before its end.');
  }
  return Buffer.concat(chunks);
};

/**
 * Checks the Content-Type of a JSON body. The code splits the text, because a pattern over optional blanks takes time
 * with the square of their number.
 */
const maxLength = 200;
const structured = /^application\/[\w.+-]+\+json$/;

const isUtf8 = (parameter: string): boolean => {
  const [name = '', value = '', ...more] = parameter.split('=').map((one) => one.trim());
  return name === 'charset' && more.length === 0 && (value === 'utf-8' || value === '"utf-8"');
};

/** `application/json` or `application/…+json`, with nothing but the charset UTF-8 behind it. */
export const isJsonType = (text: string): boolean => {
  if (text.length > maxLength) return false;
  const [type = '', ...parameters] = text.toLowerCase().split(';');
  const given = parameters.map((one) => one.trim()).filter((one) => one !== '');
  const essence = type.trim();
  return (essence === 'application/json' || structured.test(essence)) && given.length < 2 && given.every(isUtf8);
};
