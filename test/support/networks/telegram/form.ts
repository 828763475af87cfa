/** Reads the parameters of a request in the three forms that the Bot API takes. */

export interface Upload {
  readonly filename: string;
  readonly contentType: string;
  readonly bytes: Buffer;
}

export interface Form {
  /** Values of JSON keep their type; the others are text. */
  readonly values: ReadonlyMap<string, unknown>;
  readonly uploads: ReadonlyMap<string, Upload>;
  readonly isTyped: boolean;
}

export const formOf = (contentType: string, body: Buffer, query: URLSearchParams): Form | null => {
  const values = new Map<string, unknown>(query);
  const uploads = new Map<string, Upload>();
  if (body.length === 0) return { values, uploads, isTyped: false };
  if (contentType.startsWith('application/json')) {
    try {
      const members = Object.entries(JSON.parse(body.toString('utf8')) as object);
      return { values: new Map([...values, ...members]), uploads, isTyped: true };
    } catch {
      return null;
    }
  }
  if (contentType.startsWith('application/x-www-form-urlencoded')) {
    for (const [name, value] of new URLSearchParams(body.toString('utf8'))) values.set(name, value);
    return { values, uploads, isTyped: false };
  }
  const [, separator] = /^multipart\/form-data; boundary=([\w'()+,./:=?-]{1,70})$/.exec(contentType) ?? [];
  if (separator === undefined) return null;
  for (const part of partsOf(body, `--${separator}`) ?? [null]) {
    if (part === null) return null;
    const end = part.indexOf('\r\n\r\n');
    const head = part.subarray(0, end).toString('utf8');
    const [, name] = /name="([^"]+)"/.exec(head) ?? [];
    if (end < 0 || name === undefined || values.has(name) || uploads.has(name)) return null;
    const [, filename] = /filename="([^"]+)"/.exec(head) ?? [];
    const bytes = part.subarray(end + 4);
    if (filename === undefined) values.set(name, bytes.toString('utf8'));
    else {
      const [, type = 'application/octet-stream'] = /content-type: (\S+)/i.exec(head) ?? [];
      uploads.set(name, { filename, contentType: type, bytes });
    }
  }
  return { values, uploads, isTyped: false };
};

const partsOf = (body: Buffer, mark: string): Buffer[] | null => {
  const parts: Buffer[] = [];
  let place = body.indexOf(mark);
  if (place !== 0) return null;
  for (;;) {
    const from = place + mark.length;
    const tail = body.subarray(from, from + 2).toString();
    if (tail === '--') return parts;
    if (tail !== '\r\n') return null;
    place = body.indexOf(`\r\n${mark}`, from);
    if (place < 0) return null;
    parts.push(body.subarray(from + 2, place));
    place += 2;
  }
};
