/**
 * Finds the regular expressions in a source file: literals by scanning its tokens, constructed ones by their arguments.
 */

export interface Found {
  readonly line: number;
  readonly source: string;
  readonly flags: string;
}

/** After these words a slash begins a pattern; after any other it divides. */
const words = new Set(['return', 'typeof', 'case', 'in', 'of', 'await', 'else', 'do', 'void', 'throw', 'yield', 'new']);

const endOfString = (text: string, from: number): number => {
  const quote = text[from];
  let at = from + 1;
  while (at < text.length && text[at] !== quote) at += text[at] === '\\' ? 2 : 1;
  return at + 1;
};

const endOfPattern = (text: string, from: number): number => {
  let inClass = 0;
  for (let at = from + 1; at < text.length; at += 1) {
    const char = text[at];
    if (char === '\\') at += 1;
    else if (char === '[') inClass = 1;
    else if (char === ']') inClass = 0;
    else if (char === '/' && inClass === 0) return at + 1;
  }
  throw new Error(`a pattern without an end: ${text.slice(from, from + 40)}`);
};

/** Every literal of a source text. */
export const literalsOf = (text: string): readonly Found[] => {
  const found: Found[] = [];
  /** Braces that are open within each `${` that is. */
  const templates: number[] = [];
  let mayBegin = true;
  let at = 0;
  const template = (): void => {
    while (at < text.length) {
      if (text[at] === '\\') at += 2;
      else if (text.startsWith('${', at)) {
        at += 2;
        templates.push(0);
        mayBegin = true;
        return;
      } else if (text[at++] === '`') {
        mayBegin = false;
        return;
      }
    }
  };
  while (at < text.length) {
    const char = text[at] ?? '';
    if (/\s/.test(char)) at += 1;
    else if (text.startsWith('//', at)) at = text.indexOf('\n', at) < 0 ? text.length : text.indexOf('\n', at);
    else if (text.startsWith('/*', at)) at = text.indexOf('*/', at) + 2;
    else if (char === '"' || char === "'") {
      at = endOfString(text, at);
      mayBegin = false;
    } else if (char === '`') {
      at += 1;
      template();
    } else if (char === '/' && mayBegin) {
      const end = endOfPattern(text, at);
      const flags = /^[a-z]*/.exec(text.slice(end, end + 10))?.[0] ?? '';
      found.push({ line: text.slice(0, at).split('\n').length, source: text.slice(at + 1, end - 1), flags });
      at = end + flags.length;
      mayBegin = false;
    } else if (/[\w$]/.test(char)) {
      const word = /^[\w$]+/.exec(text.slice(at, at + 200))?.[0] ?? char;
      at += word.length;
      mayBegin = words.has(word);
    } else {
      const depth = templates.at(-1);
      at += 1;
      mayBegin = !(char === ')' || char === ']' || char === '}');
      if (depth !== undefined && char === '{') templates[templates.length - 1] = depth + 1;
      if (depth !== undefined && char === '}') {
        if (depth > 0) templates[templates.length - 1] = depth - 1;
        else {
          templates.pop();
          template();
        }
      }
    }
  }
  return found;
};

/** The call with which a text begins: up to the first bracket that ends an expression. */
const callAt = (text: string): string => {
  for (let end = text.indexOf(')'); end !== -1; end = text.indexOf(')', end + 1)) {
    const call = text.slice(0, end + 1);
    try {
      new Function(`return ${call}`);
      return call;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  throw new Error(`no call: ${text.slice(0, 80)}`);
};

/** Every `new RegExp(…)` of a source text with arguments from strings of the same file or from the given names. */
export const madeOf = (text: string, names: Readonly<Record<string, unknown>>): readonly Found[] =>
  [...text.matchAll(/new RegExp\(/g)].map(({ index }) => {
    const strings = [...text.matchAll(/^(?:export )?const (\w+) =\s+((['`]).*\3);$/gm)].map(
      ([, name, value]) => `const ${name} = ${value};`,
    );
    const code = `${strings.join('\n')}\nreturn ${callAt(text.slice(index))}`;
    const made = new Function(...Object.keys(names), code)(...Object.values(names)) as RegExp;
    return { line: text.slice(0, index).split('\n').length, source: made.source, flags: made.flags };
  });
