import type { NetworkHttp } from '#contracts/ports/network-http.ts';

/** The network as the kept client sees it: our one way out, once a call, with nothing of it written down. */

/** The call did not come to an answer. */
export class NotAnswered extends Error {
  override readonly name = 'NotAnswered';
}

const methods = ['GET', 'POST'] as const;

const isMethod = (text: string): text is (typeof methods)[number] => methods.some((one) => one === text);

/** Without a body in any case (RFC 9110). */
const bare = [101, 204, 205, 304];

/**
 * @param edit changes the form of a call before it goes out
 * @param signal ends every call
 */
export const fetchBy =
  (http: NetworkHttp, edit: (form: URLSearchParams) => void, signal: AbortSignal): typeof globalThis.fetch =>
  async (input, init) => {
    const request = new Request(input, init);
    const { method, url } = request;
    if (!isMethod(method)) throw new NotAnswered(`a call of method ${method}`);
    const headers = Object.fromEntries(request.headers);
    let body = Buffer.from(await request.arrayBuffer());
    if ((headers['content-type'] ?? '').startsWith('application/x-www-form-urlencoded')) {
      const form = new URLSearchParams(body.toString('utf8'));
      edit(form);
      body = Buffer.from(form.toString());
    }
    const subject = { accountId: '', targetId: null };
    const call = { method, url, headers, body: body.length === 0 ? [] : [body], subject, isSecret: true } as const;
    const result = await http.send(call, AbortSignal.any([signal, request.signal]));
    if (result.kind !== 'answered') throw new NotAnswered(result.reason);
    const answer = bare.includes(result.status) ? null : new Uint8Array(result.body);
    const response = new Response(answer, { status: result.status, headers: result.headers });
    // The client compares it with what it asked for.
    Object.defineProperty(response, 'url', { value: url });
    return response;
  };
