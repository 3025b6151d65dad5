# unet.onnx: bytes, for sizes of at least 1

def peak_bytes(batch, height, width):
    return max(batch*height*width*256 + 7808,
        batch*height*width*128 + batch*(height // 2)*(width // 2)*256 + batch*(height // 4)*(width // 4)*512 + batch*(height // 8)*(width // 8)*3072 + batch*(height // 16)*(width // 16)*4096 + 3840,
        batch*height*width*128 + batch*(height // 2)*(width // 2)*256 + batch*(height // 4)*(width // 4)*1536 + batch*(height // 8)*(width // 8)*2048 + 1792,
        batch*height*width*128 + batch*(height // 2)*(width // 2)*768 + batch*(height // 4)*(width // 4)*1024 + 768,
        batch*height*width*384 + batch*(height // 2)*(width // 2)*512 + 256)

def total_bytes(batch, height, width):
    return 31032712 + peak_bytes(batch, height, width)

def input_bytes(batch, height, width):
    return batch*height*width*12

def output_bytes(batch, height, width):
    return batch*height*width*8

def activation_bytes(batch, height, width):
    return batch*height*width*1288 + batch*(height // 2)*(width // 2)*3200 + batch*(height // 4)*(width // 4)*6400 + batch*(height // 8)*(width // 8)*12800 + batch*(height // 16)*(width // 16)*13312 + 7808

def macs(batch, height, width):
    return batch*height*width*37792 + batch*(height // 2)*(width // 2)*174080 + batch*(height // 4)*(width // 4)*696320 + batch*(height // 8)*(width // 8)*2785280 + batch*(height // 16)*(width // 16)*4063232
