/** The choice of a watermark of the account, and the upload of a new one. */

import { useEffect, useId, useState } from "preact/hooks";
import { told } from "../shared/service";
import { addWatermark, type Watermark, watermarks } from "./calls";
import { takenFrom } from "./source";
import type { Plain } from "./types";

interface Props {
  value: Plain | undefined;
  error: string | undefined;
  onChange: (value: Plain | null) => void;
}

export function WatermarkChoice({ value, error, onChange }: Props) {
  const id = useId();
  const [known, setKnown] = useState<Watermark[]>([]);
  const [failure, setFailure] = useState("");
  useEffect(() => {
    watermarks().then(setKnown, (reason: unknown) => setFailure(told(reason)));
  }, []);
  const upload = async (file: File | undefined) => {
    if (!file) return;
    try {
      const made = await addWatermark(file, file.name);
      setKnown((before) => [...before, made]);
      setFailure("");
      onChange(made.id);
    } catch (reason) {
      setFailure(told(reason));
    }
  };
  return (
    <div class="control text" data-param="watermark-id">
      <div class="control-head">
        <label for={id}>Picture</label>
      </div>
      <div class="watermark">
        <select id={id} value={String(value ?? "")} onChange={(event) => onChange(event.currentTarget.value || null)}>
          <option value="">none</option>
          {known.map((item) => (
            <option key={item.id} value={item.id}>
              {item.name}
            </option>
          ))}
        </select>
        <label class="button">
          Upload
          <input
            type="file"
            accept="image/*"
            class="hidden"
            onChange={(event) => void upload(takenFrom(event.currentTarget))}
          />
        </label>
      </div>
      {(error ?? failure) && <p class="error">{error ?? failure}</p>}
    </div>
  );
}
